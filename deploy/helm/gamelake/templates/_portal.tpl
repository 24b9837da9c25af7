{{/*
The portal's own variables. With a certificate it listens at the pod's address: for certificates at the main port, for sessions of
browsers at 8089. Without one it listens inside of the pod, where only port forwarding connects.
*/}}
{{- define "gamelake.portalEnvironment" -}}
{{- $portal := .root.Values.portal -}}
{{- $url := required "portal.prometheusUrl is empty: the portal shows what Prometheus has" $portal.prometheusUrl -}}
{{- $names := list "127.0.0.1" "localhost" -}}
{{- $environment := dict
  "PORTAL_PORT" (printf "%d" (int .workload.port))
  "PORTAL_PROMETHEUS_URL" $url
  "PORTAL_NAMESPACE" .root.Release.Namespace
  "PORTAL_RESTARTS" (include "gamelake.restarts" .root)
  "PORTAL_SQL" "/etc/gamelake/sql"
  "PORTAL_DASHBOARDS" "/etc/gamelake/dashboards"
  "PORTAL_RUNBOOKS" "/etc/gamelake/runbooks"
  "PORTAL_TRINO_URL" .root.Values.trino.url
-}}
{{- if $portal.certificateSecret -}}
{{- $_ := set $environment "PORTAL_HOST" "0.0.0.0" -}}
{{- $_ := set $environment "PORTAL_BROWSER_PORT" "8089" -}}
{{- $_ := set $environment "PORTAL_CERTIFICATE_FILE" "/etc/gamelake/secrets/tls-metrics" -}}
{{- $_ := set $environment "PORTAL_CA_FILE" "/etc/gamelake/secrets/tls-metrics-ca" -}}
{{- $_ := set $environment "PORTAL_OPERATORS" (join "," $portal.operators) -}}
{{- /* The service's, for operators' certificates; the pod's address, for Prometheus. */ -}}
{{- $names = concat $names (list (include "gamelake.name" .) "$(POD_IP)") -}}
{{- else -}}
{{- $_ := set $environment "PORTAL_HOST" "127.0.0.1" -}}
{{- if $portal.ingress.enabled }}{{ fail "portal.ingress needs portal.certificateSecret: without it the portal listens inside of its pod" }}{{ end -}}
{{- end -}}
{{- if $portal.ingress.enabled }}{{ $names = append $names $portal.ingress.host }}{{ end -}}
{{- $_ := set $environment "PORTAL_NAMES" (join "," $names) -}}
{{- $links := list -}}
{{- range $name, $address := $portal.links }}{{ $links = append $links (printf "%s=%s" $name $address) }}{{ end -}}
{{- if $links }}{{ $_ := set $environment "PORTAL_LINKS" (join "," $links) }}{{ end -}}
{{- toYaml $environment -}}
{{- end -}}

{{/* The command that restarts the workload of each scrape job. */}}
{{- define "gamelake.restarts" -}}
{{- $commands := list -}}
{{- range $name, $workload := fromYaml (include "gamelake.workloads" .) -}}
{{- $deployment := include "gamelake.name" (dict "root" $ "name" $name) -}}
{{- $commands = append $commands (printf "%s=kubectl --namespace %s rollout restart deployment/%s" $workload.scrapeJob $.Release.Namespace $deployment) -}}
{{- end -}}
{{- join "," $commands -}}
{{- end -}}
