{{/* Names, and the ports of the endpoints that a workload connects to. */}}
{{- define "gamelake.egress" -}}
{{- $values := .root.Values -}}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
- to:
{{- range $values.networkPolicies.endpointCidrs }}
  - ipBlock: {cidr: {{ . | quote }}}
{{- end }}
  ports:
{{- $ports := list -}}
{{- range .workload.endpoints -}}
{{- if eq . "kafka" -}}
{{- range splitList "," $values.kafka.bootstrapServers }}{{ $ports = append $ports (regexFind "[0-9]+$" .) }}{{ end -}}
{{- else if eq . "objectStore" -}}
{{- $ports = append $ports (include "gamelake.portOf" (dict "url" ($values.objectStore.endpoint | default "https://s3"))) -}}
{{- if eq $values.objectStore.credentials "identity" }}{{ $ports = append $ports "443" }}{{ $ports = append $ports "80" }}{{ end -}}
{{- else if eq . "prometheus" -}}
{{- $ports = append $ports (include "gamelake.portOf" (dict "url" $values.portal.prometheusUrl)) -}}
{{- else -}}
{{- $ports = append $ports (include "gamelake.portOf" (dict "url" (get (get $values .) "url"))) -}}
{{- end -}}
{{- end -}}
{{- range $ports | uniq | sortAlpha }}
  - {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end -}}
