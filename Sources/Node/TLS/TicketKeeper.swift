import Ground
import Synchronization
import Wire

/// Keeps the keys that TLS session tickets are sealed with, the same for all certificates, so that
/// clients resume their sessions after certificates were read again.
final class TicketKeyStore: Sendable {
    private let keys: Mutex<TicketKeys>

    init() {
        keys = Mutex(TicketKeys(now: SystemClock.now(), entropy: Self.randomBytes()))
    }

    /// Has the contexts in `settings` seal with the newest key.
    func installKeys(in settings: NodeSettings, now: Instant) {
        let current = keys.withLock { $0 }
        settings.tls?.setTicketKeys(current)
        settings.adminTLS?.setTicketKeys(current)
    }

    /// Makes a new key if the time for one has come.
    func rotateIfDue(_ settings: NodeSettings, now: Instant) {
        let isDue = keys.withLock { keys in
            guard keys.isRotationDue(now: now) else { return false }
            keys.rotate(now: now, entropy: Self.randomBytes())
            return true
        }
        if isDue { installKeys(in: settings, now: now) }
    }

    private static func randomBytes() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<TicketKeys.entropyBytes).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
    }
}
