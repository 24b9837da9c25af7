#!/usr/bin/env bash
# Starts Keycloak in the foreground with the mounted realm, whose client and users have the passwords of the secrets' files.
# Everything is in memory, and made again at each start.
set -euo pipefail
umask 077

# Paths in the image; tests override them.
readonly realm_file="${KEYCLOAK_REALM:-/etc/keycloak/realm.json}" secrets="${KEYCLOAK_SECRETS:-/run/secrets}"
readonly home="${KEYCLOAK_HOME:-/opt/keycloak}" data="${KEYCLOAK_DATA:-/tmp/keycloak}"

users() { # as JSON, one for each file with a user's name and password
  local file name value username password separator=""
  for file in "$secrets"/trino-* "$secrets"/keycloak-visitor; do
    username="" password=""
    while IFS='=' read -r name value || [ -n "$name" ]; do
      case "$name" in
        username) username="$value" ;;
        password) password="$value" ;;
      esac
    done <"$file"
    printf '%s{"username":"%s","enabled":true,"email":"%s@gamelake.example","emailVerified":true,' \
      "$separator" "$username" "$username"
    # Keycloak asks a user without a full name for one.
    printf '"firstName":"%s","lastName":"Gamelake","credentials":[{"type":"password","value":"%s"}]}' "$username" "$password"
    separator=","
  done
}

realm="$(<"$realm_file")"
realm="${realm//@CLIENT_SECRET@/"$(<"$secrets/oidc-client")"}"
realm="${realm//@TRINO_PORT@/"$TRINO_PORT"}"
realm="${realm//\"@USERS@\"/"$(users)"}"
rm -rf "$data"
mkdir -p "$data/import"
printf '%s\n' "$realm" >"$data/import/realm.json"
exec "$home/bin/kc.sh" start --optimized --import-realm --hostname="https://$KEYCLOAK_HOST" --https-port="${KEYCLOAK_HOST##*:}" \
  --https-certificate-file="$secrets/tls-keycloak" --https-certificate-key-file="$secrets/tls-keycloak"
