"""From requests' events to what Kafka and the vault get: many at once as columns, few of them one by one."""

from collections.abc import Sequence

from services.gateway.admission import Form
from services.gateway.parcels import Parcel, Prepared
from services.gateway.singly import Singly
from services.gateway.together import Together

# Columns cost a millisecond and more however few the events are, which so many cost one by one (decision 0033).
FEW = 400


class Assembly:
    """Prepares the parcels that have gathered; none of them waits for another's trouble."""

    def __init__(self, singly: Singly, together: Together, few: int = FEW) -> None:
        self._singly = singly
        self._together = together
        self._few = few

    def prepare(self, parcels: Sequence[Parcel]) -> list[Prepared]:
        """What is made of each parcel, in their order."""
        prepared: dict[int, Prepared] = {}
        for form in {parcel.form for parcel in parcels}:
            places = [place for place, parcel in enumerate(parcels) if parcel.form is form]
            prepared |= self._of_one_form(form, {place: parcels[place] for place in places})
        return [prepared[place] for place in range(len(parcels))]

    def _of_one_form(self, form: Form, parcels: dict[int, Parcel]) -> dict[int, Prepared]:
        fit = {place: parcel for place, parcel in parcels.items() if form.may_be_columns(parcel.written)}
        prepared = self._as_columns(fit)
        return prepared | {
            place: self._singly.prepare(parcel) for place, parcel in parcels.items() if place not in prepared
        }

    def _as_columns(self, parcels: dict[int, Parcel]) -> dict[int, Prepared]:
        """Those of the parcels that could be prepared together."""
        if sum(len(parcel.written) for parcel in parcels.values()) < self._few:
            return {}
        found = self._together.prepare(list(parcels.values()))
        if len(parcels) > 1 and not any(found):
            # A single one can spoil the columns of all.
            large = [len(parcel.written) >= self._few for parcel in parcels.values()]
            found = [
                self._together.prepare([parcel])[0] if is_large else None
                for parcel, is_large in zip(parcels.values(), large, strict=True)
            ]
        return {place: made for place, made in zip(parcels, found, strict=True) if made is not None}
