# Runs the script that comes in, and sends: its exit code, how many bytes it wrote to
# standard output and to standard error, and these bytes.
folder=$(mktemp -d) && cd "$folder" && cat > script || exit
sh script < /dev/null > out 2> err
echo "$? $(stat -c %s out) $(stat -c %s err)"
cat out err
rm -r "$folder"
