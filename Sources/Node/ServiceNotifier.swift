import Glibc
import Ground
import Platform
import Synchronization
import Telemetry

/// Client of the service manager's notification protocol, sd_notify(3): datagrams to the socket
/// that `NOTIFY_SOCKET` names.
///
/// A send blocks for at most one second; it must not happen on an event loop.
final class ServiceNotifier: Sendable {
    /// Interval between calls of ``notifyWatchdog()``; `nil` if the manager has no watchdog for
    /// this process.
    let watchdogInterval: Interval?
    private let descriptor: CInt
    private let address: sockaddr_un
    private let addressBytes: socklen_t
    private let isStopping = Atomic<Bool>(false)

    /// Creates a notifier from the environment, and removes its variables so that no child process
    /// sends notifications in this one's place.
    ///
    /// - Returns: `nil` if the variable is absent or names an unsupported kind of socket.
    static func fromEnvironment() -> ServiceNotifier? {
        let path = removeVariable("NOTIFY_SOCKET")
        let watchdog = removeVariable("WATCHDOG_USEC").flatMap { Int64($0) }
        // Without WATCHDOG_PID, the watchdog is meant for every process that has WATCHDOG_USEC.
        let isMeant = removeVariable("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
        guard let path, !path.isEmpty else { return nil }
        return ServiceNotifier(path, watchdogMicroseconds: isMeant ? watchdog : nil)
    }

    /// Creates a notifier for the socket at `path`, where a leading `@` stands for the abstract
    /// namespace.
    ///
    /// - Parameters:
    ///   - path: the path or abstract name; anything else gives `nil`.
    ///   - watchdogMicroseconds: the watchdog's timeout; `nil` for none.
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
        // Half the timeout, as sd_watchdog_enabled(3) recommends.
        watchdogInterval = watchdogMicroseconds.flatMap {
            $0 > 0 ? Interval(nanoseconds: max(1_000_000, $0 &* 500)) : nil
        }
    }

    deinit {
        close(descriptor)
    }

    // MARK: Notifications

    /// Notifies the manager that the node is ready: its ports are open, or a reload has ended.
    func notifyReady(status: String) {
        notify(["READY=1", "STATUS=\(status.singleLine)"])
    }

    /// Notifies the manager that settings are being reloaded; must be followed by
    /// ``notifyReady(status:)``.
    func notifyReloading() {
        notify(["RELOADING=1", "MONOTONIC_USEC=\(SystemClock.monotonicMicroseconds())"])
    }

    /// Notifies the manager that the node accepts no more requests and ends within `limit`; only
    /// the first call has an effect.
    ///
    /// Afterwards only watchdog notifications are sent.
    func notifyStopping(status: String, within limit: Interval) {
        guard !isStopping.load(ordering: .relaxed) else { return }
        notify([
            "STOPPING=1", "STATUS=\(status.singleLine)",
            "EXTEND_TIMEOUT_USEC=\(limit.nanoseconds / 1000)",
        ])
        isStopping.store(true, ordering: .relaxed)
    }

    /// Notifies the watchdog that the event loops respond.
    func notifyWatchdog() {
        send("WATCHDOG=1")
    }

    /// Sends assignments unless the node is stopping.
    private func notify(_ lines: [String]) {
        guard !isStopping.load(ordering: .relaxed) else { return }
        send(lines.joined(separator: "\n"))
    }

    /// Sends one datagram; a failure is ignored, because there is nobody to report it to.
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

    /// Returns a variable of the environment and removes it.
    static func removeVariable(_ name: String) -> String? {
        guard let text = unsafe getenv(name) else { return nil }
        let copy = unsafe String(cString: text)
        unsafe unsetenv(name)
        return copy
    }
}
