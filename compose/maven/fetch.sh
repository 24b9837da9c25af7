#!/usr/bin/env bash
# Fetches Maven by Ivy, which is one of PySpark's jars: `fetch.sh PYTHON FOLDER`, with JAVA_HOME set.
# Neither curl nor unzip is needed. Ivy prints its progress to the standard output, errors to the other. The folder is replaced once the archive has the pinned checksum.
set -eu

readonly python="$1" folder="$2" archive="$2.tar.gz"
readonly sha256=80ffca22aed9e8b9713a232f3394fd81d7f20322df75efdb2b047dbd3e3a23bb

mkdir -p "$(dirname "$folder")"
"$JAVA_HOME/bin/java" -jar "$("$python" -c 'import pathlib, pyspark; print(*pathlib.Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))')" \
  -warn -ivy "$(dirname "$0")/ivy.xml" -types tar.gz -overwriteMode always \
  -retrieve "$(dirname "$folder")/[artifact].[ext]" >/dev/null
"$python" -c 'import hashlib, sys; sys.exit(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest() != sys.argv[2])' "$archive" "$sha256" || {
  rm -f "$archive"
  echo "gamelake: $archive had another SHA-256 than $0 has: it was removed; run make again, or install Maven." >&2
  exit 1
}
rm -rf "$folder"
mkdir "$folder"
tar -xzf "$archive" -C "$folder" --strip-components=1
rm "$archive"
