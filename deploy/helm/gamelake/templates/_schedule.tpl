{{/* The maintenance schedule: of the values, or contracts/schedule.yaml. */}}
{{- define "gamelake.schedule" -}}
{{- if .Values.maintenance.schedule -}}
{{- toYaml (dict "tasks" .Values.maintenance.schedule) -}}
{{- else -}}
{{- include "gamelake.file" (dict "root" . "file" "contracts/schedule.yaml") -}}
{{- end -}}
{{- end -}}

{{/* The cron expression of a task's `when`. */}}
{{- define "gamelake.cron" -}}
{{- $days := dict "sunday" 0 "monday" 1 "tuesday" 2 "wednesday" 3 "thursday" 4 "friday" 5 "saturday" 6 -}}
{{- $words := splitList " " .when -}}
{{- $time := splitList ":" (last $words) -}}
{{- if regexMatch "^daily at [0-9]{2}:[0-9]{2}$" .when -}}
{{ atoi (last $time) }} {{ atoi (first $time) }} * * *
{{- else if regexMatch "^weekly on [a-z]+ at [0-9]{2}:[0-9]{2}$" .when -}}
{{ atoi (last $time) }} {{ atoi (first $time) }} * * {{ get $days (index $words 2) }}
{{- else if and (regexMatch "^every [0-9]+ minutes$" .when) (eq 0 (mod 60 (atoi (index $words 1)))) -}}
*/{{ atoi (index $words 1) }} * * * *
{{- else if and (regexMatch "^every [0-9]+ hours$" .when) (eq 0 (mod 24 (atoi (index $words 1)))) -}}
0 */{{ atoi (index $words 1) }} * * *
{{- else -}}
{{- fail (printf "maintenance.schedule: '%s' of the task %s has no cron expression; minutes must divide an hour, and hours a day" .when .name) -}}
{{- end -}}
{{- end -}}
