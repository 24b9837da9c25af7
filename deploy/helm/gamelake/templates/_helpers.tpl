{{/* The name of an object: the release's, then its own. */}}
{{- define "gamelake.name" -}}
{{- printf "%s-%s" .root.Release.Name .name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gamelake.selector" -}}
app.kubernetes.io/name: gamelake
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "gamelake.labels" -}}
{{ include "gamelake.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "gamelake.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A file that `make chart` copies into the chart. */}}
{{- define "gamelake.file" -}}
{{- $content := .root.Files.Get (printf "files/%s" .file) -}}
{{- if not $content -}}
{{- fail (printf "the chart has no files/%s: make chart copies it; render or install build/chart/gamelake" .file) -}}
{{- end -}}
{{- $content -}}
{{- end -}}

{{/* The files of a ConfigMap's folder, by their names. */}}
{{- define "gamelake.folder" -}}
{{- range $path, $_ := .root.Files.Glob (printf "files/%s" .pattern) }}
{{ base $path }}: |-
{{ $.root.Files.Get $path | indent 2 }}
{{- end }}
{{- end -}}

{{/* A number as an environment variable: helm has it as a float, which would be 1e+06. */}}
{{- define "gamelake.number" -}}
{{- if kindIs "float64" . -}}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{/* The port of an endpoint's address. */}}
{{- define "gamelake.portOf" -}}
{{- $host := (urlParse .url).host -}}
{{- if regexMatch ":[0-9]+$" $host }}{{ regexFind "[0-9]+$" $host }}
{{- else if hasPrefix "https:" .url }}443
{{- else if hasPrefix "postgresql:" .url }}5432
{{- else }}80
{{- end -}}
{{- end -}}

{{- define "gamelake.hasMetricsTls" -}}
{{- if .Values.metricsTls.secret }}true{{ end -}}
{{- end -}}
