import Glibc
import Synchronization

/// What is to be done when the process of the tests ends: a value that is kept in a static is never
/// released.
enum ExitHandlers {
    private static let endings = Mutex<[@Sendable () -> Void]>([])

    private static let isRegistered: Bool = {
        let code = atexit {
            for end in ExitHandlers.endings.withLock({ $0 }).reversed() { end() }
        }
        return code == 0
    }()

    /// Has `end` called when the process ends, last come first.
    static func atExit(_ end: @escaping @Sendable () -> Void) {
        guard isRegistered else { return }
        endings.withLock { $0.append(end) }
    }
}
