# The arguments arrive as JSON on standard input. The output is the result: JSON becomes
# structured data, anything else plain text. A non-zero exit code is an error.
sha256sum | cut -d ' ' -f 1
