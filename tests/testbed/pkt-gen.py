"""Behaves as netmap's pkt-gen does at its command line, over packet sockets, slowly."""
import socket
import struct
import sys
import time

FLAGS = "NW46"


def options(words):
    found = {}
    words = iter(words)
    for word in words:
        found[word[1]] = True if word[1] in FLAGS else next(words)
    return found


def norm(value, plain, unit):
    scales = iter(["", "K", "M", "G", "T"])
    scale = next(scales)
    while not plain and value >= 1000:
        value, scale = value / 1000, next(scales)
    return f"{value:.{0 if plain else 3}f} {scale}{unit}"


def say(what, shift=0):
    print(f"{(time.time() + shift) % 1000:.6f} {what}", file=sys.stderr, flush=True)


def total(word, packets, length, seconds, plain):
    if packets == 0:
        print(f"{word} nothing.")
        return
    print(f"{word} {packets} packets {packets * length} bytes {packets} events {length} bytes each in {seconds:.2f} seconds.")
    print(f"Speed: {norm(packets / seconds, plain, 'pps')} Bandwidth: 0 bps (raw 0 bps). Average batch: 1.00 pkts")


def frame(given):
    def mac(text):
        return bytes(int(part, 16) for part in text.split(":"))

    def end(text):
        address, _, port = text.partition(":")
        return socket.inet_aton(address), int(port or 1234)

    length = int(given["l"])
    (source, source_port), (destination, port) = end(given["s"]), end(given["d"])
    udp = struct.pack("!HHHH", source_port, port, length - 34, 0) + bytes(length - 42)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length - 14, 0, 0, 64, 17, 0, source, destination)
    sums = sum(struct.unpack("!10H", ip))
    sums = (sums & 0xFFFF) + (sums >> 16)
    ip = ip[:10] + struct.pack("!H", ~(sums + (sums >> 16)) & 0xFFFF) + ip[12:]
    return mac(given["D"]) + mac(given["S"]) + b"\x08\x00" + ip + udp


def send(given, link):
    """Each thread keeps to the rate for itself. Only with -o, a shift of the clock, it begins with a second."""
    rate, wanted = int(given["R"]) * int(given.get("p", 1)), int(given["n"])
    packet = frame(given)
    burst = max(1, rate // 300) if rate else 512
    shift = float(given.get("o", 0))
    say("sender_body [1611] start, fd 3 main_fd 3", shift)
    began, sent = time.time(), 0
    if rate and "o" in given:
        for _ in range(4):
            say("main [3276] as many lines as pkt-gen prints", shift)
            time.sleep(0.05)
        began = int(began + shift) + 2 - shift
        time.sleep(max(0, began - time.time()))
    while sent < wanted:
        if rate:
            time.sleep(max(0, began + sent / rate - time.time()))
        for _ in range(min(burst, wanted - sent)):
            link.send(packet)
            sent += 1
    total("Sent", sent, len(packet), time.time() - began, "N" in given)


def receive(given, link):
    """With -W it ends when no more comes, as older versions always did."""
    period, seen, silent = int(given.get("T", 1000)) / 1000, 0, 0
    while not (seen and silent > 1 and "W" in given):
        began, packets, length = time.time(), 0, 0
        while (left := began + period - time.time()) > 0:
            link.settimeout(left)
            try:
                data, (_, _, kind, _, _) = link.recvfrom(2048)
            except TimeoutError:
                break
            if kind != socket.PACKET_OUTGOING:
                packets, length = packets + 1, len(data)
        seen, silent = seen + packets, 0 if packets else silent + 1
        plain, taken = "N" in given, time.time() - began
        say(f"main_thread [2687] {norm(packets / taken, plain, 'pps')} ({norm(packets, plain, 'pkts')} "
            f"{norm(8 * packets * length, plain, 'bps')} in {taken * 1e6:.0f} usec) 1.00 avg_batch 0 min_space")
    total("Received", seen, 60, 1, "N" in given)


given = options(sys.argv[1:])
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind((given["i"], 0))
say(f"main [2938] interface is {given['i']}")
send(given, link) if given["f"] == "tx" else receive(given, link)
