"""The settings of the portal, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from gamelake.model.environment import Environment
from gamelake.model.errors import SettingsError
from gamelake.model.options import EndpointTls, endpoint_tls
from gamelake.trino import TrinoAccess, trino_access
from services.portal.remedies import RestartCommands

_SQL = Path(__file__).parents[2] / "sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """The limits of a question."""

    time: timedelta = timedelta(seconds=30)
    rows: int = 200


@dataclass(frozen=True, slots=True)
class PageLink:
    """A page that the portal leads to; `user` and the name of the password's secret, where it asks for them."""

    address: str
    user: str = ""
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalSettings:
    """The settings of the portal; docs/settings.md explains each variable.

    Attributes:
        browser_port: a port without TLS, for browsers that `gamelake portal` has let in; None: there is none.
        names: by which browsers may address it.
        operators: with TLS the names in the certificates that open its pages.
        prometheus: the URL of Prometheus; None: health and figures come from `probes` and `metrics`.
        namespace: the Kubernetes namespace whose services, streams and alerts are shown; empty: all of Prometheus.
        restarts: the command for each service that does not respond.
        probes: the health check of each service, by HTTP or TCP.
        metrics: the metrics pages of streams.
        links: pages of other services, by their names.
        trino: None: questions are run by DuckDB.
        report: the file of a run's report, which need not be there yet; None: the portal has none.
        docs: the folder of the docs site; None: the portal has no documents.
        faults: the file of the faults to practise with; None: none are shown.
        switchboard: the Unix socket of the program that switches load and faults; None: the portal changes nothing.
        runbooks: the folder of the runbooks, shown as text until there is a docs site; None: they are not.
        dashboards: the folder of the dashboards that Grafana reads; None: the portal shows none.
        lineage: the file of a page of the tables' lineage, which need not be there yet; None: it is drawn, where the
            portal has the lakehouse.
        has_lakehouse: whether the tables can be read without Trino, so that their lineage can be drawn.
    """

    host: str
    port: int
    browser_port: int | None
    tls: EndpointTls | None
    names: frozenset[str]
    operators: frozenset[str]
    prometheus: str | None
    namespace: str
    restarts: RestartCommands
    probes: Mapping[str, str]
    metrics: tuple[str, ...]
    links: Mapping[str, PageLink]
    sql: Path
    report: Path | None
    docs: Path | None
    faults: Path | None
    switchboard: Path | None
    runbooks: Path | None
    dashboards: Path | None
    trino: TrinoAccess | None
    lineage: Path | None
    has_lakehouse: bool
    limits: QueryLimits = field(default_factory=QueryLimits)

    @classmethod
    def from_env(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings.

        Raises:
            SettingsError: a variable is missing or malformed.
        """
        env = Environment(variables)
        return cls(
            host=env.optional("PORTAL_HOST", "127.0.0.1"),
            port=env.whole("PORTAL_PORT", 8088, 1, 65_535),
            browser_port=env.whole("PORTAL_BROWSER_PORT", 0, 0, 65_535) or None,
            tls=endpoint_tls(env, "PORTAL_CERTIFICATE_FILE", "PORTAL_CA_FILE"),
            names=frozenset(env.optional("PORTAL_NAMES", "127.0.0.1,localhost").lower().split(",")),
            operators=frozenset(env.optional("PORTAL_OPERATORS", "operator").split(",")),
            prometheus=env.optional("PORTAL_PROMETHEUS_URL", "").rstrip("/") or None,
            namespace=env.optional("PORTAL_NAMESPACE", ""),
            restarts=RestartCommands(_split(env, "PORTAL_RESTARTS", "serving=command") or None),
            probes=_pairs(env, "PORTAL_PROBES"),
            metrics=tuple(filter(None, env.optional("PORTAL_METRICS", "").split(","))),
            links={name: _page_link(given) for name, given in _pairs(env, "PORTAL_LINKS").items()},
            sql=Path(env.optional("PORTAL_SQL", str(_SQL))),
            report=_path(env, "PORTAL_REPORT"),
            docs=_path(env, "PORTAL_DOCS"),
            faults=_path(env, "PORTAL_FAULTS"),
            switchboard=_path(env, "PORTAL_SWITCHBOARD"),
            runbooks=_path(env, "PORTAL_RUNBOOKS"),
            dashboards=_path(env, "PORTAL_DASHBOARDS"),
            trino=_trino(env) if env.optional("PORTAL_TRINO_URL", "") else None,
            lineage=_path(env, "PORTAL_LINEAGE"),
            has_lakehouse=bool(env.optional("GAMELAKE_LAKEHOUSE", "")),
            limits=QueryLimits(
                time=timedelta(seconds=env.number("PORTAL_QUERY_SECONDS", 30, 1, 600)),
                rows=env.whole("PORTAL_QUERY_ROWS", 200, 1, 10_000),
            ),
        )


def _path(env: Environment, name: str) -> Path | None:
    given = env.optional(name, "")
    return Path(given) if given else None


def _trino(env: Environment) -> TrinoAccess:
    return trino_access(
        env,
        url="PORTAL_TRINO_URL",
        credentials_file="PORTAL_TRINO_CREDENTIALS_FILE",
        user="PORTAL_TRINO_USER",
        default_user="analyst",
    )


def _page_link(given: str) -> PageLink:
    """An address, after which user and secret may stand: `https://127.0.0.1:8080;analyst;trino-analyst`."""
    return PageLink(*given.split(";", 2))


def _pairs(env: Environment, name: str) -> dict[str, str]:
    """A variable like `Grafana=https://127.0.0.1:3000,Trino=https://127.0.0.1:8080`."""
    example = "Grafana=https://127.0.0.1:3000"
    found = _split(env, name, example)
    for key, address in found.items():
        if not address.startswith(("http://", "https://", "tcp://")):
            raise _bad_pair(name, f"{key}={address}", example)
    return found


def _split(env: Environment, name: str, example: str) -> dict[str, str]:
    """A variable like `name=value,other=value`."""
    found = {}
    for pair in filter(None, map(str.strip, env.optional(name, "").split(","))):
        key, _, value = pair.partition("=")
        if not key or not value:
            raise _bad_pair(name, pair, example)
        found[key] = value
    return found


def _bad_pair(name: str, pair: str, example: str) -> SettingsError:
    return SettingsError(f"{name} has '{pair}'; it must be like '{example}', with commas between")
