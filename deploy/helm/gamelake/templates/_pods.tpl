{{/* What all containers are: without privileges, on a filesystem that they cannot write. */}}
{{- define "gamelake.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "gamelake.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1001
runAsGroup: 1001
fsGroup: 1001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* The environment of a workload: endpoints, then its settings. */}}
{{- define "gamelake.environment" -}}
{{- $values := .root.Values -}}
{{- $keys := fromYamlArray (include "gamelake.keysOf" .) -}}
{{- $environment := dict
  "GAMELAKE_GAMES_FILE" "/opt/gamelake/contracts/games.yaml"
  "MALLOC_ARENA_MAX" "2"
-}}
{{- if $values.trust.secret -}}
{{- $_ := set $environment "SSL_CERT_FILE" "/etc/gamelake/secrets/tls-ca" -}}
{{- $_ := set $environment "REQUESTS_CA_BUNDLE" "/etc/gamelake/secrets/tls-ca" -}}
{{- end -}}
{{- if has "objectStore" .workload.endpoints -}}
{{- $_ := set $environment "GAMELAKE_LAKEHOUSE" $values.lakehouse -}}
{{- with $values.objectStore.endpoint }}{{ $_ := set $environment "GAMELAKE_S3_ENDPOINT" . }}{{ end -}}
{{- with $values.objectStore.region }}{{ $_ := set $environment "GAMELAKE_S3_REGION" . }}{{ end -}}
{{- end -}}
{{- if has "kafka" .workload.endpoints -}}
{{- $_ := set $environment "GAMELAKE_BOOTSTRAP_SERVERS" $values.kafka.bootstrapServers -}}
{{- $_ := set $environment "GAMELAKE_TOPIC" $values.kafka.topic -}}
{{- $_ := set $environment "GAMELAKE_KAFKA_SASL_MECHANISM" $values.kafka.saslMechanism -}}
{{- if eq $values.kafka.authorities "system" }}{{ $_ := set $environment "GAMELAKE_KAFKA_CA_FILE" "system" }}
{{- else if eq $values.kafka.authorities "bundle" }}{{ $_ := set $environment "GAMELAKE_KAFKA_CA_FILE" "/etc/gamelake/secrets/tls-ca" }}
{{- end -}}
{{- end -}}
{{- if has "registry" .workload.endpoints }}{{ $_ := set $environment "GAMELAKE_REGISTRY_URL" $values.registry.url }}{{ end -}}
{{- range $keys -}}
{{- $file := printf "/etc/gamelake/secrets/%s" . -}}
{{- if hasPrefix "object-store-" . }}{{ $_ := set $environment "AWS_SHARED_CREDENTIALS_FILE" $file }}
{{- else if hasPrefix "kafka-" . }}{{ $_ := set $environment "GAMELAKE_KAFKA_CREDENTIALS_FILE" $file }}
{{- else if eq "registry-writer" . }}{{ $_ := set $environment "GAMELAKE_REGISTRY_CREDENTIALS_FILE" $file }}
{{- else if eq "postgres-vault" . }}{{ $_ := set $environment "GAMELAKE_VAULT_CREDENTIALS_FILE" $file }}
{{- else if eq "vault-keys" . }}{{ $_ := set $environment "GAMELAKE_VAULT_KEYS_FILE" $file }}
{{- else if eq "ingest-keys" . }}{{ $_ := set $environment "INGEST_KEYS_FILE" $file }}
{{- else if eq "trino-catalog" . }}{{ $_ := set $environment "GAMELAKE_TRINO_CREDENTIALS_FILE" $file }}
{{- else if eq "trino-views" . }}{{ $_ := set $environment "GAMELAKE_CATALOG_VIEWS_CREDENTIALS_FILE" $file }}
{{- else if eq "trino-analyst" . }}{{ $_ := set $environment "PORTAL_TRINO_CREDENTIALS_FILE" $file }}
{{- end -}}
{{- end -}}
{{- if eq .name "gateway" -}}
{{- $_ := set $environment "INGEST_HOST" "0.0.0.0" -}}
{{- $_ := set $environment "INGEST_PORT" (printf "%d" (int .workload.port)) -}}
{{- $_ := set $environment "GAMELAKE_VAULT" $values.vault.url -}}
{{- $_ := set $environment "PGSSLMODE" $values.vault.sslMode -}}
{{- /* Without a file libpq looks for one in the home folder, and connects to no server with verify-ca or verify-full. */ -}}
{{- $_ := set $environment "PGSSLROOTCERT" (ternary "/etc/gamelake/secrets/tls-ca" "/etc/ssl/certs/ca-certificates.crt" (ne $values.trust.secret "")) -}}
{{- if $values.gateway.certificateSecret }}{{ $_ := set $environment "INGEST_CERTIFICATE_FILE" "/etc/gamelake/secrets/tls-gateway" }}{{ end -}}
{{- end -}}
{{- if eq .name "portal" -}}
{{- $environment = merge $environment (fromYaml (include "gamelake.portalEnvironment" .)) -}}
{{- else -}}
{{- $_ := set $environment "GAMELAKE_METRICS_HOST" "0.0.0.0" -}}
{{- $_ := set $environment "GAMELAKE_METRICS_PORT" (printf "%d" (int (.workload.metricsPort | default .workload.port))) -}}
{{- if include "gamelake.hasMetricsTls" .root -}}
{{- $_ := set $environment "GAMELAKE_METRICS_CERTIFICATE_FILE" "/etc/gamelake/secrets/tls-metrics" -}}
{{- $_ := set $environment "GAMELAKE_METRICS_CA_FILE" "/etc/gamelake/secrets/tls-metrics-ca" -}}
{{- end -}}
{{- end -}}
{{- if has .name (list "ingest-events" "ingest-files" "gold" "live-ops" "delivery" "audit" "maintenance") -}}
{{- $_ := set $environment "GAMELAKE_HEARTBEAT_FILE" "/tmp/heartbeat" -}}
{{- end -}}
{{- if has .name (list "ingest-files" "delivery" "maintenance") -}}
{{- with $values.landing.uri -}}
{{- $_ := set $environment "GAMELAKE_LANDING" . -}}
{{- $_ := set $environment "GAMELAKE_LANDING_PREFIX" $values.landing.prefix -}}
{{- end -}}
{{- end -}}
{{- if has .name (list "ingest-events" "ingest-files" "maintenance") }}{{ $_ := set $environment "GAMELAKE_RULES" "/etc/gamelake/rules" }}{{ end -}}
{{- if eq .name "maintenance" }}{{ $_ := set $environment "GAMELAKE_SCHEDULE_FILE" "/etc/gamelake/schedule/schedule.yaml" }}{{ end -}}
{{- if eq .name "catalog" -}}
{{- $_ := set $environment "GAMELAKE_TRINO_URL" $values.trino.url -}}
{{- $_ := set $environment "GAMELAKE_TRINO_CATALOG" $values.trino.catalog -}}
{{- $_ := set $environment "GAMELAKE_CATALOG_VIEWS" "/etc/gamelake/views" -}}
{{- with $values.trino.metastore }}{{ $_ := set $environment "GAMELAKE_CATALOG_METASTORE" . }}{{ end -}}
{{- end -}}
{{- if .workload.isDriver -}}
{{- $java := "-XX:+UseSerialGC -XX:MaxDirectMemorySize=128m -XX:ReservedCodeCacheSize=96m" -}}
{{- if $values.trust.secret }}{{ $java = printf "%s -Djavax.net.ssl.trustStore=/etc/gamelake/secrets/tls-ca-java -Djavax.net.ssl.trustStoreType=PKCS12" $java }}{{ end -}}
{{- $_ := set $environment "JDK_JAVA_OPTIONS" $java -}}
{{- end -}}
{{- range $name, $value := .values.settings }}{{ $_ := set $environment $name (include "gamelake.number" $value) }}{{ end -}}
{{- if .workload.isDriver }}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}
{{- if or .workload.isDriver (eq .name "portal") }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- end }}
{{- range $name, $value := $environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/*
The workload's own keys, certificates and authorities. Not under /run/secrets, where a pod has the token of its service account.
*/}}
{{- define "gamelake.secretSources" -}}
{{- range $key := fromYamlArray (include "gamelake.keysOf" .) }}
- secret:
    name: {{ get $.root.Values.secrets.names $key | default $.root.Values.secrets.name }}
    items: [{key: {{ $key }}, path: {{ $key }}}]
{{- end }}
{{- with .root.Values.trust.secret }}
- secret:
    name: {{ . }}
    items: [{key: ca.crt, path: tls-ca}, {key: ca.p12, path: tls-ca-java}]
{{- end }}
{{- with include "gamelake.metricsSecret" . }}
- secret:
    name: {{ . }}
    items: [{key: tls-combined.pem, path: tls-metrics}, {key: ca.crt, path: tls-metrics-ca}]
{{- end }}
{{- if and (eq .name "gateway") .root.Values.gateway.certificateSecret }}
- secret:
    name: {{ .root.Values.gateway.certificateSecret }}
    items: [{key: tls-combined.pem, path: tls-gateway}]
{{- end }}
{{- end -}}

{{/*
Changes with the content of the secrets that a workload has, so that an upgrade replaces its pods: processes read keys and
certificates when they start. Without a cluster (helm template) the content is unknown.
*/}}
{{- define "gamelake.secretsChecksum" -}}
{{- $contents := list -}}
{{- range fromYamlArray (include "gamelake.secretSources" .) -}}
{{- $found := lookup "v1" "Secret" $.root.Release.Namespace .secret.name -}}
{{- range .secret.items -}}
{{- $contents = append $contents (list .path (dig "data" .key "" (default dict $found))) -}}
{{- end -}}
{{- end -}}
{{- $contents | toJson | sha256sum -}}
{{- end -}}

{{- define "gamelake.volumes" -}}
- name: tmp
{{- if .values.scratch }}
  emptyDir: {sizeLimit: {{ .values.scratch }}}
{{- else }}
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- end }}
- name: contracts
  configMap:
    name: {{ .root.Values.contracts.configMap | default (include "gamelake.name" (dict "root" .root "name" "contracts")) }}
{{- if has .name (list "ingest-events" "ingest-files" "maintenance") }}
- name: rules
  configMap:
    name: {{ .root.Values.contracts.rulesConfigMap | default (include "gamelake.name" (dict "root" .root "name" "rules")) }}
{{- end }}
{{- if eq .name "maintenance" }}
- name: schedule
  configMap:
    name: {{ include "gamelake.name" (dict "root" .root "name" "schedule") }}
{{- end }}
{{- if eq .name "catalog" }}
- name: views
  configMap:
    name: {{ include "gamelake.name" (dict "root" .root "name" "views") }}
    items:
{{- range $path, $_ := .root.Files.Glob "files/views/*/*.sql" }}
    - {key: {{ base (dir $path) }}.{{ base $path }}, path: {{ base (dir $path) }}/{{ base $path }}}
{{- end }}
    - {key: funnels.yaml, path: funnels.yaml}
{{- end }}
{{- if eq .name "portal" }}
{{- range list "questions" "dashboards" "runbooks" }}
- name: {{ . }}
  configMap:
    name: {{ include "gamelake.name" (dict "root" $.root "name" (printf "portal-%s" .)) }}
{{- end }}
{{- end }}
{{- if .workload.isDriver }}
- name: spark
  configMap:
    name: {{ include "gamelake.name" (dict "root" .root "name" (printf "%s-spark" .name)) }}
{{- end }}
{{- with include "gamelake.secretSources" . }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
{{- . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "gamelake.mounts" -}}
- {name: tmp, mountPath: /tmp}
# Next to the schemas of events, which are in the image: rules are checked by their columns.
- {name: contracts, mountPath: /opt/gamelake/contracts/games.yaml, subPath: games.yaml, readOnly: true}
- {name: contracts, mountPath: /opt/gamelake/contracts/metrics.yaml, subPath: metrics.yaml, readOnly: true}
- {name: contracts, mountPath: /opt/gamelake/contracts/experiments.yaml, subPath: experiments.yaml, readOnly: true}
- {name: contracts, mountPath: /opt/gamelake/contracts/segments.yaml, subPath: segments.yaml, readOnly: true}
{{- if has .name (list "ingest-events" "ingest-files" "maintenance") }}
- {name: rules, mountPath: /etc/gamelake/rules, readOnly: true}
{{- end }}
{{- if eq .name "maintenance" }}
- {name: schedule, mountPath: /etc/gamelake/schedule, readOnly: true}
{{- end }}
{{- if eq .name "catalog" }}
- {name: views, mountPath: /etc/gamelake/views, readOnly: true}
{{- end }}
{{- if eq .name "portal" }}
- {name: questions, mountPath: /etc/gamelake/sql/questions, readOnly: true}
- {name: dashboards, mountPath: /etc/gamelake/dashboards, readOnly: true}
- {name: runbooks, mountPath: /etc/gamelake/runbooks, readOnly: true}
{{- end }}
{{- if .workload.isDriver }}
- {name: spark, mountPath: /etc/spark, readOnly: true}
{{- end }}
{{- if include "gamelake.secretSources" . }}
- {name: secrets, mountPath: /etc/gamelake/secrets, readOnly: true}
{{- end }}
{{- end -}}

{{/* Whether it runs: the gateway and the portal by HTTP, the catalog by its port, all others by the file that they touch. */}}
{{- define "gamelake.probes" -}}
{{- if eq .name "gateway" }}
startupProbe:
  httpGet: {path: /healthz, port: main, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.gateway.certificateSecret "") }}}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /healthz, port: main, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.gateway.certificateSecret "") }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: main, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.gateway.certificateSecret "") }}}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- else if eq .name "portal" }}
{{- range $probe, $failures := dict "startupProbe" 90 "livenessProbe" 6 "readinessProbe" 2 }}
{{ $probe }}:
{{- if $.root.Values.portal.certificateSecret }}
  # The main port asks for a client certificate, which the kubelet does not have.
  httpGet: {path: /healthz, port: browser}
{{- else }}
  exec: {command: [curl, -fs, -o, /dev/null, "http://127.0.0.1:{{ $.workload.port }}/healthz"]}
{{- end }}
  periodSeconds: {{ ternary 2 10 (eq $probe "startupProbe") }}
  timeoutSeconds: 5
  failureThreshold: {{ $failures }}
{{- end }}
{{- else if eq .name "catalog" }}
startupProbe:
  tcpSocket: {port: main}
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  tcpSocket: {port: main}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  tcpSocket: {port: main}
  periodSeconds: 10
{{- else }}
{{- $alive := list "sh" "-c" (printf "[ -n \"$(find /tmp/heartbeat -newermt '-%d seconds' 2>/dev/null)\" ]" (.workload.silentSeconds | default 60 | int)) | toJson }}
startupProbe:
  exec: {command: [test, -f, /tmp/heartbeat]}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 120
livenessProbe:
  exec: {command: {{ $alive }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  exec: {command: {{ $alive }}}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}
{{- end -}}

{{/* The pod of a workload: `args` are those of its program, `isTask` leaves out ports and probes. */}}
{{- define "gamelake.pod" -}}
serviceAccountName: {{ include "gamelake.name" (dict "root" .root "name" .name) }}
automountServiceAccountToken: {{ gt (int (dig "executors" "max" 0 .values)) 0 }}
# The variables that it would add begin with the release's name: those of a release "gamelake" like settings.
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
securityContext:
{{- include "gamelake.podSecurity" . | nindent 2 }}
terminationGracePeriodSeconds: 60
{{- if .isTask }}
restartPolicy: Never
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- if gt (int (.values.replicas | default 1)) 1 }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
{{- include "gamelake.selector" . | nindent 6 }}
{{- end }}
containers:
- name: {{ .name }}
  image: {{ include "gamelake.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ .args | default .workload.args | toJson }}
  env:
{{- include "gamelake.environment" . | nindent 2 }}
{{- if not .isTask }}
  ports:
  - {name: main, containerPort: {{ .workload.port }}}
{{- with .workload.metricsPort }}
  - {name: metrics, containerPort: {{ . }}}
{{- end }}
{{- if and (eq .name "portal") .values.certificateSecret }}
  - {name: browser, containerPort: 8089}
{{- end }}
{{- include "gamelake.probes" . | nindent 2 }}
{{- end }}
  resources: {{- toYaml .values.resources | nindent 4 }}
  securityContext:
{{- include "gamelake.containerSecurity" . | nindent 4 }}
  volumeMounts:
{{- include "gamelake.mounts" . | nindent 2 }}
volumes:
{{- include "gamelake.volumes" . | nindent 0 }}
{{- end -}}
