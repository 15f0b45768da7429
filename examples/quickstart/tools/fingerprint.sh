# The arguments come as JSON on standard input. What is printed is the answer: JSON becomes
# structured data, anything else a text. A non-zero exit code is an error.
sha256sum | cut -d ' ' -f 1
