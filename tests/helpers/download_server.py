"""HTTP server on localhost with faults."""

import contextlib
import http.server
import threading


class Server:
    """Server of `content`. Each request uses the next fault; the last fault is repeated.

    A fault is an HTTP error status, a word, or a function of the handler that answers.
    """

    def __init__(self, content, faults, name='cifar-10-binary.tar.gz'):
        self.ranges = []  # Range header of each request
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requested = self.headers.get('Range')
                server.ranges.append(requested)
                fault = faults.pop(0) if len(faults) > 1 else faults[0]
                if callable(fault):
                    return fault(self)
                if isinstance(fault, int):
                    return self.send_error(fault)
                start = int(requested[len('bytes=') : -1]) if requested else 0
                body = content[start:]
                self.send_response(206 if start else 200)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if fault == 'corrupt':
                    body = bytes(len(body))
                if fault == 'cut short':
                    body = body[: len(body) // 2]
                with contextlib.suppress(ConnectionError):  # the client has closed
                    self.wfile.write(body)

            def log_message(self, *unused_args):
                pass

        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self._server.server_port}/{name}'
        # a short poll interval, for a fast shutdown
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def close(self):
        """Stop the server; use contextlib.closing."""
        self._server.shutdown()
        self._server.server_close()


def answer(handler, body, **headers):
    """Answer a request with the status 200."""
    handler.send_response(200)
    for name, value in headers.items():
        handler.send_header(name.replace('_', '-'), value)
    handler.end_headers()
    with contextlib.suppress(ConnectionError):  # the client has closed
        handler.wfile.write(body)
