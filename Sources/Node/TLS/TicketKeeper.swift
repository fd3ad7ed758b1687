import Ground
import Synchronization
import Wire

/// Keeps the keys that TLS session tickets are sealed with, the same for all certificates, so that
/// clients resume their sessions after certificates were read again.
final class TicketKeeper: Sendable {
    private let keys: Mutex<TicketKeys>

    init() {
        keys = Mutex(TicketKeys(now: SystemClock.now(), dice: Self.dice()))
    }

    /// Has the contexts in `settings` seal with the newest key.
    func seal(for settings: NodeSettings, now: Instant) {
        let current = keys.withLock { $0 }
        settings.tls?.adopt(current)
        settings.adminTLS?.adopt(current)
    }

    /// Makes a new key if the time for one has come.
    func ticked(_ settings: NodeSettings, now: Instant) {
        let isDue = keys.withLock { keys in
            guard keys.isDue(now: now) else { return false }
            keys.rotate(now: now, dice: Self.dice())
            return true
        }
        if isDue { seal(for: settings, now: now) }
    }

    private static func dice() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<TicketKeys.diceBytes).map { _ in UInt8.random(in: .min ... .max, using: &random)
        }
    }
}
