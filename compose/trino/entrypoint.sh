#!/usr/bin/env bash
# Starts Trino in the foreground with the mounted configuration: by HTTPS with users' passwords, with OIDC_ISSUER also with
# logins at an OpenID Connect provider, with TLS=0 in the clear.
set -euo pipefail

# Paths in the image; tests override them.
readonly settings="${TRINO_SETTINGS:-/etc/trino}" secrets="${TRINO_SECRETS:-/run/secrets}"
readonly home="${TRINO_HOME:-/usr/lib/trino}" run="${TRINO_RUN_DIRECTORY:-/tmp}"
# A killed container leaves its pid file, and after the restart another process may have that id.
readonly pid_file="$run/trino.pid"
# The official image has all connectors, and each takes memory: only the one for Delta is linked, users' passwords,
# and the audit of queries.
readonly plugins="$run/plugins" config="$run/config.properties"

fail() {
  echo "trino: $1" >&2
  exit 1
}

# What depends on the provider. The secret of Trino as its client is in Trino's configuration alone, not in a variable.
oidc_settings() {
  local prefix=http-server.authentication.oauth2 secret
  case "$OIDC_ISSUER" in
    https://*) ;;
    *) fail "OIDC_ISSUER is '$OIDC_ISSUER'; it must begin with https://" ;;
  esac
  case "$OIDC_USER_SUFFIX" in
    *[!A-Za-z0-9@._-]*) fail "OIDC_USER_SUFFIX is '$OIDC_USER_SUFFIX'; it may have letters, digits and @._- only" ;;
  esac
  secret="$(<"$secrets/oidc-client")"
  case "$secret" in
    "" | *[[:cntrl:]]*) fail "the secret oidc-client is empty, or has more than one line" ;;
  esac
  cat "$settings/oidc.properties"
  # In a file of properties a backslash escapes.
  echo "$prefix.client-secret=${secret//\\/\\\\}"
  # A person's name at the provider is that of a user, followed by the suffix; others are refused.
  echo "$prefix.user-mapping.pattern=($(<"$settings/people"))${OIDC_USER_SUFFIX//./[.]}"
  [ -z "$OIDC_AUDIENCES" ] || echo "$prefix.additional-audiences=$OIDC_AUDIENCES"
}

rm -rf "$pid_file" "$plugins" "$config"
mkdir "$plugins"
ln -s "$home/plugin/delta-lake" "$home/plugin/password-authenticators" "$home/plugin/kafka-event-listener" "$plugins/"
# The event listener logs its Kafka client's properties: the password is in a file of its own, which jvm.config names.
value_of() { sed -n "s/^$1=//p" "$secrets/kafka-trino"; }
(
  umask 077
  printf 'KafkaClient {\n  org.apache.kafka.common.security.scram.ScramLoginModule required username="%s" password="%s";\n};\n' \
    "$(value_of username)" "$(value_of password)" >"$run/kafka-jaas.conf"
)
cp "$settings/audit-producer.properties" "$run/audit-producer.properties"
if [ "${TLS:-1}" = 0 ]; then
  cat "$settings/config.properties" "$settings/http.properties" >"$config"
  echo "security.protocol=SASL_PLAINTEXT" >>"$run/audit-producer.properties"
else
  # Trino reads it from a variable; a process's command line can be seen by others.
  TRINO_SHARED_SECRET="$(cat "$secrets/trino-internal")"
  export TRINO_SHARED_SECRET
  https="$(<"$settings/https.properties")"
  if [ -n "${OIDC_ISSUER:-}" ]; then
    https="${https/.type=PASSWORD/.type=PASSWORD,OAUTH2}"
    provider="$(oidc_settings)"
  fi
  (umask 077 && printf '%s\n' "$(<"$settings/config.properties")" "$https" "${provider:-}" >"$config")
  echo "security.protocol=SASL_SSL" >>"$run/audit-producer.properties"
fi
exec "$home/bin/launcher" run --etc-dir "$settings" --config "$config" --pid-file "$pid_file" -D "plugin.dir=$plugins"
