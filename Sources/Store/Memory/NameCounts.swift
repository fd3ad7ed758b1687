import Ground
import Synchronization

/// How many entries in memory have a name, in their keys or their tags, by its fingerprint.
///
/// A name is counted before its entry can be found, and until after that.
final class FingerprintCounts: Sendable {
    private final class Stripe: Sendable {
        let counts = Mutex<[UInt32: UInt32]>([:])
    }

    private let stripes = (0..<64).map { _ in Stripe() }

    private func stripe(_ name: UInt32) -> Stripe { stripes[Int(name >> 26)] }

    func contains(_ name: UInt32) -> Bool {
        stripe(name).counts.withLock { $0[name] != nil }
    }

    func add(_ entry: MemoryEntry) {
        entry.forEachFingerprint { name in
            stripe(name).counts.withLock { $0[name, default: 0] += 1 }
        }
    }

    func remove(_ entry: MemoryEntry) {
        entry.forEachFingerprint { name in
            stripe(name).counts.withLock { counts in
                let count = counts[name] ?? 0
                counts[name] = count > 1 ? count - 1 : nil
            }
        }
    }
}

extension MemoryEntry {
    /// Tells the fingerprints of its names.
    fileprivate func forEachFingerprint(_ body: (UInt32) -> Void) {
        body(URLName.fingerprint(URLName.name(ofKey: keyAndHead[..<headStart])))
        for tag in tags {
            if let name = URLName.name(inTag: tag) { body(URLName.fingerprint(name)) }
        }
    }
}
