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

# Haft closes its pipes a moment before it is gone, and when it goes, the system wakes and ends
# (SIGHUP) groups that are stopped already. So wait until this process has another parent; no pause,
# it is a matter of microseconds.
tries=0
while [ "$tries" -lt 500 ] && read -r stat 2>/dev/null <"/proc/$$/stat"; do
    case ${stat##*) } in
        ?" $PPID "*) tries=$((tries + 1)) ;;
        *) break ;;
    esac
done

# A tool that ends because Haft did would leave children that nothing leads to any more.
for group in $groups; do
    kill -STOP "-$group" 2>/dev/null
done

# Sets `new` to the processes among the /proc files $@ that were not found before, and stops them, so
# that none has another child while its children are looked for.
stop_new() {
    new=
    for file; do
        pid=${file#/proc/}
        pid=${pid%%/*}
        case " $found" in
            *" $pid "*) ;;
            *)
                kill -STOP "$pid" 2>/dev/null
                found="$found$pid "
                new="$new$pid "
                ;;
        esac
    done
}

# The files of processes whose line in /proc/PID/stat goes on like $1 after name and state. The dead
# that nobody has collected do not count.
stats() {
    grep -l -a -E -e "\) [^ZX] $1 " /proc/[0-9]*/stat 2>/dev/null
}

# "1 2 " becomes "(1|2)".
any_of() (
    set -- $1
    IFS='|'
    printf '(%s)' "$*"
)

# Two looks that find nothing: a process that is just being replaced shows no environment.
quiet=0
looks=0
while [ "$quiet" -lt 2 ] && [ "$looks" -lt 40 ]; do
    looks=$((looks + 1))
    quiet=$((quiet + 1))
    found=
    # Who carries the mark, who is in a group (the field after the parent), and all their children.
    stop_new $(grep -l -a -F -e "$1" /proc/[0-9]*/environ 2>/dev/null)
    marked=$new
    stop_new $(stats "[0-9]+ $(any_of "$groups")")
    new="$marked$new"
    while [ -n "$new" ]; do
        stop_new $(stats "$(any_of "$new")")
    done
    for group in $groups; do
        # Also the dead that nobody has collected make this succeed; /proc tells them apart.
        kill -9 "-$group" 2>/dev/null && [ ! -e /proc/self/stat ] && quiet=0
    done
    for pid in $found; do
        kill -9 "$pid" 2>/dev/null && quiet=0
    done
    sleep 0.02
done
