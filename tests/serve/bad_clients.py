"""Misuses a server until it is killed: slow readers, half-open sockets, garbage. Arguments: port, connections."""
import random, socket, sys, time

port, count = int(sys.argv[1]), int(sys.argv[2])
random.seed(1)
body = b'{"inputs": [' + b",".join([b'["Number 1, the parcel is wrong."]'] * 32) + b"]}"
request = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
kinds = {
    "idle": b"",
    "half": request[: len(request) // 2],
    "headers": b"POST /predict HTTP/1.1\r\nHost: ",
    "garbage": bytes(random.randrange(256) for _ in range(500)),
    "slow": request * 5,  # many answers that nobody reads
    "reset": request,
}
connections = []
while True:
    kind = random.choice(list(kinds))
    try:
        s = socket.socket()
        if kind == "slow":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.settimeout(1)
        s.connect(("127.0.0.1", port))
        s.sendall(kinds[kind])
        if kind == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
        else:
            connections.append(s)
    except OSError:
        pass
    if len(connections) >= count:
        connections.pop(random.randrange(count)).close()
    time.sleep(0.01)
