{{/*
The workloads, as YAML: what each one runs, which keys it is given, which endpoints it connects to, and the scrape jobs of
monitoring/prometheus/prometheus.yml that read its metrics: at `metricsPort`, which clients of the service can't reach, or at its
only port. All templates go by this table.
*/}}
{{- define "gamelake.workloads" -}}
gateway:
  args: [python, -m, services.gateway]
  keys: [kafka-ingest, registry-writer, postgres-vault, vault-keys, ingest-keys]
  endpoints: [kafka, registry, vault]
  port: 8000
  metricsPort: 9117
  scrapeJob: ingest
ingest-events:
  args: [python, -m, jobs.ingest_events]
  keys: [object-store-ingest-events, kafka-ingest-events]
  endpoints: [kafka, registry, objectStore]
  port: 9108
  scrapeJob: ingest-events
  isDriver: true
ingest-files:
  args: [python, -m, jobs.ingest_files]
  keys: [object-store-ingest-events, kafka-ingest-events]
  endpoints: [kafka, registry, objectStore]
  port: 9109
  scrapeJob: ingest-files
  isDriver: true
gold:
  args: [python, -m, jobs.gold]
  keys: [object-store-serving, kafka-live-ops, registry-writer]
  endpoints: [kafka, registry, objectStore]
  port: 9110
  scrapeJob: serving
  isDriver: true
  silentSeconds: 180
live-ops:
  args: [python, -m, jobs.live_ops]
  keys: [object-store-serving, kafka-live-ops, registry-writer]
  endpoints: [kafka, registry, objectStore]
  port: 9111
  scrapeJob: live-ops
  isDriver: true
  silentSeconds: 120
catalog:
  args: [python, -m, services.catalog]
  keys: [object-store-catalog, trino-catalog, trino-views]
  endpoints: [objectStore, trino]
  port: 9109
  scrapeJob: catalog
delivery:
  args: [python, -m, services.delivery]
  keys: [object-store-delivery, kafka-delivery]
  endpoints: [kafka, objectStore]
  port: 9115
  scrapeJob: delivery
audit:
  args: [python, -m, services.audit]
  keys: [object-store-audit, kafka-audit]
  endpoints: [kafka, objectStore]
  port: 9116
  scrapeJob: audit
maintenance:
  args: [python, -m, jobs.maintenance, --observe]
  keys: [object-store-maintenance, kafka-maintenance]
  endpoints: [kafka, registry, objectStore]
  port: 9113
  scrapeJob: maintenance-scheduler
portal:
  args: [python, -m, services.portal]
  keys: [trino-analyst]
  endpoints: [trino, prometheus]
  port: 8088
  scrapeJob: portal
{{- end -}}

{{/* Prometheus scrapes it: only a portal with a certificate listens outside of its pod. */}}
{{- define "gamelake.isScraped" -}}
{{- if or (ne .name "portal") .root.Values.portal.certificateSecret }}true{{ end -}}
{{- end -}}

{{/* The Secret of the certificate that a workload serves its metrics with; empty: HTTP. */}}
{{- define "gamelake.metricsSecret" -}}
{{- ternary .root.Values.portal.certificateSecret .root.Values.metricsTls.secret (eq .name "portal") -}}
{{- end -}}

{{/* The values of a workload. */}}
{{- define "gamelake.valuesOf" -}}
{{- if hasKey .root.Values.drivers .name -}}
{{- toYaml (get .root.Values.drivers .name) -}}
{{- else -}}
{{- toYaml (get .root.Values .name) -}}
{{- end -}}
{{- end -}}

{{/* Which of a workload's keys are files: not those of endpoints that need no secret. */}}
{{- define "gamelake.keysOf" -}}
{{- $keys := list -}}
{{- range .workload.keys -}}
{{- $of := "" -}}
{{- if hasPrefix "object-store-" . }}{{ $of = $.root.Values.objectStore.credentials -}}
{{- else if hasPrefix "kafka-" . }}{{ $of = $.root.Values.kafka.credentials -}}
{{- else if hasPrefix "registry-" . }}{{ $of = $.root.Values.registry.credentials -}}
{{- else if hasPrefix "trino-" . }}{{ $of = $.root.Values.trino.credentials -}}
{{- else }}{{ $of = "secret" -}}
{{- end -}}
{{- if eq $of "secret" }}{{ $keys = append $keys . }}{{ end -}}
{{- end -}}
{{- toYaml $keys -}}
{{- end -}}
