package import Ground

/// The objects that are not stored here and were asked for in part of late, by the keyed hashes of
/// their keys.
///
/// The first who wants a part gets it from the origin as a part; who wants one again soon has the
/// whole fetched, so that it is stored, unless it is known not to be fit for that.
///
/// Bounded by two generations: the older one is forgotten when the newer one is full. What is
/// forgotten costs no more than that the next part is again the first.
package struct RangeRequestHistory: Sendable {
    /// What is known of the whole of an object.
    package enum Storability: Hashable, Sendable {
        /// The origin has not said how large it is.
        case unknown
        /// It may be stored, and has so many bytes.
        case storable(bytes: UInt64)
        /// It is larger than what is stored, or may not be stored.
        case unstorable

        /// It costs an origin hardly more than a part of it.
        package var isSmall: Bool {
            if case .storable(let bytes) = self {
                bytes <= RangeRequestHistory.smallBytesMax
            } else {
                false
            }
        }
    }

    /// What the origin is asked for where a part is wanted.
    package enum FetchScope: Hashable, Sendable {
        case part
        case whole
    }

    private struct Record {
        var storability = Storability.unknown
        /// When a part was last wanted; nil if only the whole is known.
        var requestedAt: Instant?
    }

    package static let smallBytesMax: UInt64 = 4 << 20
    /// Within which time another part counts as one of the same object again.
    package static let repeatInterval = Interval.seconds(60)

    private let recordsMax: Int
    private var newer: [UInt64: Record] = [:]
    private var older: [UInt64: Record] = [:]

    /// A table of at most twice `notesMax` objects.
    package init(notesMax: Int = 8192) {
        self.recordsMax = notesMax
    }

    package var count: Int { newer.count + older.keys.count { newer[$0] == nil } }

    /// A part of an object is wanted that neither memory nor disk has.
    package mutating func recordPartRequest(_ hash: UInt64, now: Instant) -> FetchScope {
        var note = record(hash)
        let isAgain = note.requestedAt.map { now - $0 < Self.repeatInterval } ?? false
        note.requestedAt = now
        insert(note, hash)
        return isAgain && note.storability != .unstorable ? .whole : .part
    }

    /// An answer of the origin's tells what the whole of an object is.
    package mutating func recordStorability(_ whole: Storability, of hash: UInt64) {
        var note = record(hash)
        note.storability = whole
        insert(note, hash)
    }

    private func record(_ hash: UInt64) -> Record { newer[hash] ?? older[hash] ?? Record() }

    private mutating func insert(_ note: Record, _ hash: UInt64) {
        if newer.count >= recordsMax, newer[hash] == nil {
            older = newer
            newer = [:]
        }
        newer[hash] = note
    }
}
