{{/* spark-defaults.conf of a driver; gamelake/session.py has the settings of the jobs. */}}
{{- define "gamelake.sparkSettings" -}}
{{- $executors := .values.executors -}}
spark.driver.memory                   {{ .values.memory }}
# A batch of files has many long tasks; a batch of events must not wait for all of them.
spark.scheduler.mode                  FAIR
# A Python worker that is silent for this long is killed and its task retried; no chunk of a batch takes as long.
spark.python.worker.idleTimeoutSeconds 300
spark.python.worker.killOnIdleTimeout  true
spark.task.maxFailures                4
spark.network.timeout                 60s
spark.network.timeoutInterval         10s
spark.ui.enabled                      false
spark.ui.showConsoleProgress          false
{{- if $executors.max }}
spark.master                          k8s://https://kubernetes.default.svc
spark.driver.host                     ${env:POD_IP}
spark.kubernetes.namespace            {{ .root.Release.Namespace }}
# Executors end with the driver's pod, which owns them.
spark.kubernetes.driver.pod.name      ${env:POD_NAME}
spark.kubernetes.executor.podTemplateFile /etc/spark/executor.yaml
spark.kubernetes.executor.podTemplateContainerName executor
spark.kubernetes.container.image      {{ include "gamelake.image" .root }}
spark.kubernetes.container.image.pullPolicy {{ .root.Values.image.pullPolicy }}
{{- with .root.Values.imagePullSecrets }}
spark.kubernetes.container.image.pullSecrets {{ join "," . }}
{{- end }}
spark.kubernetes.authenticate.executor.serviceAccountName {{ include "gamelake.name" (dict "root" .root "name" (printf "%s-executors" .name)) }}
# The driver has no right to volumes and services, and needs none.
spark.kubernetes.driver.ownPersistentVolumeClaim false
spark.kubernetes.driver.reusePersistentVolumeClaim false
spark.kubernetes.driver.service.deleteOnTermination false
# The scratch volume of executors.
spark.kubernetes.local.dirs.tmpfs     false
# The secret is each driver's own; who may read pods in the namespace can read it.
spark.authenticate                    true
spark.network.crypto.enabled          true
spark.blockManager.port               7079
spark.driver.port                     7078
spark.executor.memory                 {{ $executors.memory }}
# Arrow and Parquet live outside of the heap, in the Python workers.
spark.executor.memoryOverhead         {{ $executors.memoryOverhead }}
spark.executor.cores                  {{ $executors.cores }}
spark.kubernetes.executor.request.cores {{ $executors.cpuRequest }}
spark.executor.extraJavaOptions       -XX:+UseSerialGC -XX:TieredStopAtLevel=1{{ if .root.Values.trust.secret }} -Djavax.net.ssl.trustStore=/etc/gamelake/secrets/tls-ca-java -Djavax.net.ssl.trustStoreType=PKCS12{{ end }}
# Loads what tasks import once for each executor.
spark.python.daemon.module            gamelake.streaming.python_daemon
# As many executors as there is work for. A stream plans for all of them from its start (spark.default.parallelism).
spark.dynamicAllocation.enabled       true
spark.dynamicAllocation.shuffleTracking.enabled true
spark.dynamicAllocation.minExecutors  {{ $executors.min }}
# Else Spark warns that this is below the minimum.
spark.executor.instances              {{ $executors.min }}
spark.dynamicAllocation.initialExecutors {{ $executors.min }}
spark.dynamicAllocation.maxExecutors  {{ $executors.max }}
spark.dynamicAllocation.schedulerBacklogTimeout 1s
spark.dynamicAllocation.executorIdleTimeout 120s
spark.default.parallelism             {{ mul $executors.max $executors.cores }}
{{- else }}
spark.local.dir                       /tmp
spark.master                          local[{{ $executors.cores }}, 4]
spark.driver.host                     127.0.0.1
spark.driver.bindAddress              127.0.0.1
{{- end }}
{{- end -}}

{{/* The pod of an executor; Spark adds its name, its owner, its resources and its command. */}}
{{- define "gamelake.executor" -}}
apiVersion: v1
kind: Pod
metadata:
  labels: {{- include "gamelake.labels" (dict "root" .root "name" (printf "%s-executors" .name)) | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext: {{- include "gamelake.podSecurity" . | nindent 4 }}
{{- with .values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
{{- end }}
{{- with .values.tolerations }}
  tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
  containers:
  - name: executor
    # Spark's executors write to where they are.
    workingDir: /tmp
    env:
    - {name: MALLOC_ARENA_MAX, value: "2"}
    # The tasks' Python workers are reused: return freed memory to the system after each batch.
    - {name: MALLOC_TRIM_THRESHOLD_, value: "16777216"}
{{- if eq .root.Values.objectStore.credentials "secret" }}
    - {name: AWS_SHARED_CREDENTIALS_FILE, value: /etc/gamelake/secrets/{{ first .workload.keys }}}
{{- end }}
{{- if .root.Values.trust.secret }}
    - {name: SSL_CERT_FILE, value: /etc/gamelake/secrets/tls-ca}
    - {name: REQUESTS_CA_BUNDLE, value: /etc/gamelake/secrets/tls-ca}
{{- end }}
    resources:
      limits: {ephemeral-storage: {{ .values.scratch }}}
    securityContext: {{- include "gamelake.containerSecurity" . | nindent 6 }}
    volumeMounts:
    - {name: tmp, mountPath: /tmp}
{{- if include "gamelake.executorSecrets" . }}
    - {name: secrets, mountPath: /etc/gamelake/secrets, readOnly: true}
{{- end }}
  volumes:
  - name: tmp
    emptyDir: {sizeLimit: {{ .values.scratch }}}
{{- with include "gamelake.executorSecrets" . }}
  - name: secrets
    projected:
      defaultMode: 0440
      sources:
{{- . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Executors have the object store's key and the authorities; tasks get the rest from the driver. */}}
{{- define "gamelake.executorSecrets" -}}
{{- $workload := dict "keys" (list (first .workload.keys)) -}}
{{- $root := dict "Values" (set (deepCopy .root.Values) "metricsTls" (dict "secret" "")) -}}
{{- include "gamelake.secretSources" (dict "root" $root "name" .name "workload" $workload) -}}
{{- end -}}
