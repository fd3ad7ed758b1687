import Glibc
import Ground
import Synchronization
import Telemetry

/// What started this process as a service, if it wants to be told how the service is doing: the
/// protocol of sd_notify(3), datagrams to the socket that `NOTIFY_SOCKET` names.
///
/// Never waits longer than a second, and never on an event loop.
final class ServiceNotifier: Sendable {
    /// How often ``beat()`` is to be called; nil if nobody watches.
    let watchdogInterval: Interval?
    private let descriptor: CInt
    private let address: sockaddr_un
    private let addressBytes: socklen_t
    private let isStopping = Atomic<Bool>(false)

    /// Takes the variables of the environment out of it, so that no child speaks for this process.
    ///
    /// Nil if nobody wants to be told, or by a kind of socket that is not known here.
    static func fromEnvironment() -> ServiceNotifier? {
        let path = removeVariable("NOTIFY_SOCKET")
        let watchdog = removeVariable("WATCHDOG_USEC").flatMap { Int64($0) }
        // Without the variable the watchdog is meant for whoever has its time.
        let isMeant = removeVariable("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
        guard let path, !path.isEmpty else { return nil }
        return ServiceNotifier(path, watchdogMicroseconds: isMeant ? watchdog : nil)
    }

    /// A manager that listens at `path`, where `@` at the start stands for the abstract namespace.
    init?(_ path: String, watchdogMicroseconds: Int64?) {
        var bytes = Array(path.utf8)
        guard let first = bytes.first, first == UInt8(ascii: "/") || first == UInt8(ascii: "@")
        else { return nil }
        if first == UInt8(ascii: "@") { bytes[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let start = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let room = MemoryLayout<sockaddr_un>.size - start
        guard bytes.count < room else { return nil }
        unsafe withUnsafeMutableBytes(of: &address) { all in
            unsafe UnsafeMutableRawBufferPointer(rebasing: all[start...]).copyBytes(from: bytes)
        }
        // A path ends with a zero; an abstract name ends where the address does.
        addressBytes = socklen_t(start + bytes.count + (first == UInt8(ascii: "/") ? 1 : 0))
        self.address = address
        descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        let patienceBytes = socklen_t(MemoryLayout<timeval>.size)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, patienceBytes)
        // Twice as often as is asked for, as sd_watchdog_enabled(3) recommends.
        watchdogInterval = watchdogMicroseconds.flatMap {
            $0 > 0 ? Interval(nanoseconds: max(1_000_000, $0 &* 500)) : nil
        }
    }

    deinit {
        close(descriptor)
    }

    // MARK: What is told

    /// The ports are open.
    func notifyReady(status: String) {
        notify(["READY=1", "STATUS=\(status.singleLine)"])
    }

    /// Settings are being read again; to be followed by ``ready(status:)``.
    func notifyReloading() {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let microseconds = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
        notify(["RELOADING=1", "MONOTONIC_USEC=\(microseconds)"])
    }

    /// Nobody is let in any more, and the end comes within `limit`.
    ///
    /// Nothing but beats is told after it.
    func notifyStopping(status: String, within limit: Interval) {
        guard !isStopping.load(ordering: .relaxed) else { return }
        notify([
            "STOPPING=1", "STATUS=\(status.singleLine)",
            "EXTEND_TIMEOUT_USEC=\(limit.nanoseconds / 1000)",
        ])
        isStopping.store(true, ordering: .relaxed)
    }

    /// The service answers.
    func notifyWatchdog() {
        send("WATCHDOG=1")
    }

    private func notify(_ lines: [String]) {
        guard !isStopping.load(ordering: .relaxed) else { return }
        send(lines.joined(separator: "\n"))
    }

    /// One datagram; nobody can be told if it does not get through.
    private func send(_ message: String) {
        let bytes = Array(message.utf8)
        var address = address
        while true {
            let sent = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe sendto(
                        descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), pointer,
                        addressBytes)
                }
            }
            if sent < 0, errno == EINTR { continue }
            return
        }
    }

    private static func removeVariable(_ name: String) -> String? {
        guard let text = unsafe getenv(name) else { return nil }
        let copy = unsafe String(cString: text)
        unsafe unsetenv(name)
        return copy
    }
}
