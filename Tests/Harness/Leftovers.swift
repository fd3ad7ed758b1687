import Foundation
import Glibc
import Synchronization

/// Folders that are removed when the process of the tests ends: whoever is kept in a static is
/// never released.
enum Leftovers {
    private static let folders = Mutex<Set<URL>>([])

    private static let isRegistered: Bool = {
        let code = atexit {
            for folder in Leftovers.folders.withLock({ $0 }) {
                try? FileManager.default.removeItem(at: folder)
            }
        }
        return code == 0
    }()

    static func add(_ folder: URL) {
        guard isRegistered else { return }
        folders.withLock { _ = $0.insert(folder) }
    }
}
