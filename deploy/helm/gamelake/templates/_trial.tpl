{{/* The services of the trial: keys, environment, port, folders that they write, files of compose/. */}}
{{- define "gamelake.trialServices" -}}
postgres:
  keys: [postgres-password]
  environment: {TLS: "0", POSTGRES_DATA: /var/lib/postgresql/data/cluster}
  ports: [5432]
  memory: 256Mi
  folders: [/var/lib/postgresql/data, /tmp]
kafka:
  keys: [kafka-admin]
  environment: {TLS: "0", KAFKA_HEAP_OPTS: -Xms384m -Xmx384m}
  ports: [9092]
  memory: 768Mi
  folders: [/var/lib/kafka, /run/kafka, /tmp]
  files: {kafka/server.properties: /etc/kafka/server.properties}
registry:
  keys: [postgres-registry, registry-writer]
  environment:
    TLS: "0"
    JAVA_OPTIONS: -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError
    APICURIO_STORAGE_KIND: sql
    APICURIO_STORAGE_SQL_KIND: postgresql
    APICURIO_DATASOURCE_URL: jdbc:postgresql://postgres:5432/registry?sslmode=disable
    APICURIO_DATASOURCE_USERNAME: registry
    QUARKUS_MANAGEMENT_PORT: "9000"
  ports: [8080]
  memory: 512Mi
  folders: [/tmp]
object-store:
  keys: [object-store-root, kafka-object-store]
  environment: {TLS: "0", MINIO_MEMLIMIT: 544MiB}
  ports: [9000]
  memory: 704Mi
  folders: [/data, /notifications, /tmp]
{{- end -}}

{{/* What configures them, as the one-shots of the stack do. */}}
{{- define "gamelake.trialJobs" -}}
create-topics:
  args: [python, -m, services.provision.topics]
  keys: [kafka-admin, kafka-audit, kafka-delivery, kafka-ingest, kafka-ingest-events, kafka-live-ops, kafka-object-store, kafka-offers, kafka-simulator, kafka-trino, kafka-maintenance]
  environment: {GAMELAKE_BOOTSTRAP_SERVERS: "kafka:9092", GAMELAKE_TOPIC: events, PROVISION_TOPICS_FILE: /etc/trial/topics.yaml}
  files: {kafka/topics.yaml: /etc/trial/topics.yaml}
create-databases:
  args: [python, -m, services.provision.databases]
  keys: [postgres-password, postgres-registry, postgres-vault]
  environment: {PROVISION_POSTGRES_HOST: postgres, PGSSLMODE: disable, PROVISION_DATABASES_FILE: /etc/trial/databases.yaml}
  files: {postgres/databases.yaml: /etc/trial/databases.yaml}
create-buckets:
  args: [python, -m, services.provision.buckets]
  keys: [object-store-root, object-store-ingest-events, object-store-serving, object-store-privacy, object-store-trino, object-store-catalog, object-store-maintenance, object-store-delivery, object-store-uploads, object-store-audit, object-store-metrics]
  environment: {GAMELAKE_S3_ENDPOINT: "http://object-store:9000", PROVISION_BUCKETS_FILE: /etc/trial/buckets.yaml}
  files:
    object-store/buckets.yaml: /etc/trial/buckets.yaml
    object-store/policies/serving.json: /etc/trial/policies/serving.json
    object-store/policies/audit.json: /etc/trial/policies/audit.json
    object-store/policies/catalog.json: /etc/trial/policies/catalog.json
    object-store/policies/delivery.json: /etc/trial/policies/delivery.json
    object-store/policies/ingest-events.json: /etc/trial/policies/ingest-events.json
    object-store/policies/metrics.json: /etc/trial/policies/metrics.json
    object-store/policies/privacy.json: /etc/trial/policies/privacy.json
    object-store/policies/trino.json: /etc/trial/policies/trino.json
    object-store/policies/maintenance.json: /etc/trial/policies/maintenance.json
    object-store/policies/uploads.json: /etc/trial/policies/uploads.json
set-compatibility:
  args: [python, -m, services.provision.subjects]
  keys: [registry-writer]
  environment: {GAMELAKE_REGISTRY_URL: "http://registry:8080/apis/ccompat/v7", GAMELAKE_REGISTRY_CREDENTIALS_FILE: /run/secrets/registry-writer, PROVISION_SUBJECTS_FILE: /etc/trial/subjects.yaml}
  files: {registry/subjects.yaml: /etc/trial/subjects.yaml}
{{- end -}}

{{/* The pod of a service or a job of the trial; none has a token of Kubernetes. */}}
{{- define "gamelake.trialPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .user }}
  fsGroup: {{ .user }}
  seccompProfile: {type: RuntimeDefault}
{{- if .isTask }}
restartPolicy: OnFailure
{{- end }}
containers:
- name: {{ .name }}
  image: {{ .image | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .spec.args }}
  args: {{ toJson . }}
{{- end }}
  env:
{{- range $name, $value := .spec.environment }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- if not .isTask }}
  ports:
{{- range .spec.ports }}
  - containerPort: {{ . }}
{{- end }}
  startupProbe:
    tcpSocket: {port: {{ first .spec.ports }}}
    periodSeconds: 2
    failureThreshold: 150
  livenessProbe:
    tcpSocket: {port: {{ first .spec.ports }}}
    periodSeconds: 10
    failureThreshold: 6
  readinessProbe:
    tcpSocket: {port: {{ first .spec.ports }}}
    periodSeconds: 5
{{- end }}
  resources:
    requests: {cpu: 50m, memory: {{ .spec.memory | default "128Mi" }}}
    limits: {memory: {{ .spec.memory | default "256Mi" }}}
  securityContext:
{{- include "gamelake.containerSecurity" . | nindent 4 }}
  volumeMounts:
{{- range .spec.folders | default (list "/tmp") }}
  - {name: {{ trimPrefix "/" . | replace "/" "-" }}, mountPath: {{ . }}}
{{- end }}
{{- range $file, $path := .spec.files }}
  - {name: files, mountPath: {{ $path }}, subPath: {{ replace "/" "." $file }}, readOnly: true}
{{- end }}
  - {name: secrets, mountPath: /run/secrets, readOnly: true}
volumes:
{{- range .spec.folders | default (list "/tmp") }}
- name: {{ trimPrefix "/" . | replace "/" "-" }}
  emptyDir: {sizeLimit: {{ $.root.Values.trial.storage }}}
{{- end }}
{{- if .spec.files }}
- name: files
  configMap: {name: {{ include "gamelake.name" (dict "root" .root "name" "trial") }}}
{{- end }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
{{- range .spec.keys }}
    - secret:
        name: {{ get $.root.Values.secrets.names . | default $.root.Values.secrets.name }}
        items: [{key: {{ . }}, path: {{ . }}}]
{{- end }}
{{- end -}}
