#!/usr/bin/env bash
# Runs jobs.doctor on the running stack's lakehouse, or else on that of `make demo`; arguments are its options. Exit code 1 if
# any check FAILs, 2 if it can't read the lakehouse; 0 also if there is none.
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=compose/read_env.sh
. compose/read_env.sh
read_env compose
readonly options="$*" python=.venv/bin/python lakehouse="${GAMELAKE_LAKEHOUSE:-file://$PWD/build/demo/lakehouse}"

runs() { # SERVICE
  command -v docker >/dev/null 2>&1 || return 1
  [ -n "$(docker ps --quiet --filter "label=com.docker.compose.project=${COMPOSE_PROJECT_NAME:-gamelake}" \
    --filter "label=com.docker.compose.service=$1" 2>/dev/null)" ]
}

heading() { # TEXT
  case " $options " in *" --json "*) ;; *) echo "$1" ;; esac
}

# The Kafka user of maintenance-scheduler may read the topic's settings; that of tools may not.
service() {
  if runs maintenance-scheduler; then echo maintenance-scheduler; else echo tools; fi
}

if runs object-store; then
  heading "The stack's lakehouse:"
  exec compose/stack.sh run --rm --no-deps --no-TTY --env GAMELAKE_GAMES_FILE=contracts/games.yaml "$(service)" \
    python -m jobs.doctor "$@"
elif [ -x "$python" ] && [ -d "${lakehouse#file://}/_gamelake/streams" ]; then
  heading "The lakehouse in ${lakehouse#file://}:"
  GAMELAKE_LAKEHOUSE="$lakehouse" GAMELAKE_GAMES_FILE=contracts/games.yaml exec "$python" -m jobs.doctor "$@"
fi
