# Outlives Haft by a moment and takes everything down that Haft started.
# $1 is what the marker of every child begins with; this process does not carry it.
trap '' INT TERM HUP

# Only Haft holds the other end. The loop ends when Haft does, however it ended.
groups=' '
while read -r change group; do
    case $change in
        +) groups="$groups$group " ;;
        -) case $groups in
            *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
        esac ;;
    esac
done

# Two looks that find nothing: a process that is just being replaced shows no environment.
quiet=0
looks=0
while [ "$quiet" -lt 2 ] && [ "$looks" -lt 40 ]; do
    looks=$((looks + 1))
    quiet=$((quiet + 1))
    for group in $groups; do
        kill -9 "-$group" 2>/dev/null && quiet=0
    done
    for file in $(grep -l -a -F -e "$1" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        kill -9 "${pid%/environ}" 2>/dev/null && quiet=0
    done
    sleep 0.02
done
