"""Names that were left by another process."""

import socket

# see directories.process_mark
ABANDONED = f'~{socket.gethostname()}~999999999~'  # larger than every process id
ELSEWHERE = f'~{socket.gethostname()}-2~999999999~'
