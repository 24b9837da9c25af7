#!/usr/bin/env bash
# Assembles the chart in build/chart/gamelake: deploy/helm/gamelake and, as files/, what it shares with the stack: rules,
# dashboards, contracts, views, questions, runbooks, settings. Helm packages no file from outside of a chart, and follows no link to one.
# `chart.sh [FOLDER]`: in another folder than build/chart.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly folder="${1:-build/chart}"

mkdir -p "$folder"
new="$(mktemp -d "$folder/new.XXXXXX")"
trap 'rm -rf "$new"' EXIT
cp -R deploy/helm/gamelake/. "$new"
files="$new/files"
mkdir -p "$files/contracts" "$files/rules" "$files/views" "$files/questions" "$files/runbooks" "$files/spark" "$files/prometheus/rules" "$files/dashboards"
cp contracts/games.yaml contracts/metrics.yaml contracts/experiments.yaml contracts/segments.yaml contracts/schedule.yaml "$files/contracts"
cp quality/rules/*.yaml "$files/rules"
cp -R sql/views/. "$files/views"
cp sql/questions/*.sql "$files/questions"
cp monitoring/runbooks/*.md "$files/runbooks"
cp compose/spark/log4j2.properties "$files/spark"
cp monitoring/prometheus/prometheus.yml "$files/prometheus"
cp monitoring/prometheus/rules/*.yml "$files/prometheus/rules"
cp monitoring/grafana/generated/*.json "$files/dashboards"
# Settings of the trial's services.
for each in kafka/server.properties kafka/topics.yaml postgres/databases.yaml registry/subjects.yaml object-store/buckets.yaml; do
  mkdir -p "$files/compose/${each%/*}"
  cp "compose/$each" "$files/compose/$each"
done
cp -R compose/object-store/policies "$files/compose/object-store"
chmod 0755 "$new"
rm -rf "$folder/gamelake"
mv "$new" "$folder/gamelake"
echo "chart: $folder/gamelake"
