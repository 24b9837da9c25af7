"""Data Docs: the suites of a run and what they came to, as a site of plain files."""

import shutil
from pathlib import Path
from typing import Any

from gamelake.quality.suites.running import Validations

_SITE = "gamelake"


def build_docs(validations: Validations, folder: Path) -> Path:
    """Put the site of a run in the place of the one that was there; gives its first page."""
    folder = folder.resolve()
    shutil.rmtree(folder / "expectations", ignore_errors=True)
    shutil.rmtree(folder / "validations", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Its type does not know that the site can be without advice for beginners.
    site: Any = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder)},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    validations.context.add_data_docs_site(_SITE, site)
    validations.context.build_data_docs([_SITE])
    return folder / "index.html"
