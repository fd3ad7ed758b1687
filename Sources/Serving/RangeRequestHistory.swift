package import Ground

/// The objects that are not stored but were recently requested in part, by the keyed hashes of
/// their keys.
///
/// The first range request for an object is fetched from the origin as a range. Another one soon
/// after fetches the whole object so that it is stored, unless it is known to be unsuitable.
///
/// Bounded by two generations: when the newer one is full, the older one is dropped. A dropped
/// record only means that the next range request counts as the first.
package struct RangeRequestHistory: Sendable {
    /// The suitability of the whole object for storage.
    package enum Storability: Hashable, Sendable {
        /// The origin has not stated its size.
        case unknown
        /// The object may be stored and has this many bytes.
        case storable(bytes: UInt64)
        /// The object exceeds the size limit or may not be stored.
        case unstorable

        /// True if fetching the whole costs the origin hardly more than a range.
        package var isSmall: Bool {
            if case .storable(let bytes) = self {
                bytes <= RangeRequestHistory.smallBytesMax
            } else {
                false
            }
        }
    }

    /// The scope of the request to the origin when a client wants a range.
    package enum FetchScope: Hashable, Sendable {
        /// The range that the client wants.
        case part
        /// The whole object, so that it is stored.
        case whole
    }

    private struct Record {
        var storability = Storability.unknown
        /// The time of the last range request; `nil` if only the storability is known.
        var requestedAt: Instant?
    }

    /// The size in bytes up to which ``Storability/isSmall`` is true.
    package static let smallBytesMax: UInt64 = 4 << 20
    /// The maximum time between two range requests for the second to count as a repetition.
    package static let repeatInterval = Interval.seconds(60)

    private let recordsMax: Int
    private var newer: [UInt64: Record] = [:]
    private var older: [UInt64: Record] = [:]

    /// Creates an empty history of at most twice `notesMax` objects.
    package init(notesMax: Int = 8192) {
        self.recordsMax = notesMax
    }

    /// The number of objects in the history.
    package var count: Int { newer.count + older.keys.count { newer[$0] == nil } }

    /// Records a range request that neither memory nor disk can serve, and decides what to fetch.
    package mutating func recordPartRequest(_ hash: UInt64, now: Instant) -> FetchScope {
        var note = record(hash)
        let isAgain = note.requestedAt.map { now - $0 < Self.repeatInterval } ?? false
        note.requestedAt = now
        insert(note, hash)
        return isAgain && note.storability != .unstorable ? .whole : .part
    }

    /// Records what a response of the origin states about the whole object.
    package mutating func recordStorability(_ whole: Storability, of hash: UInt64) {
        var note = record(hash)
        note.storability = whole
        insert(note, hash)
    }

    private func record(_ hash: UInt64) -> Record { newer[hash] ?? older[hash] ?? Record() }

    /// Adds a record; if the newer generation is full, it replaces the older one.
    private mutating func insert(_ note: Record, _ hash: UInt64) {
        if newer.count >= recordsMax, newer[hash] == nil {
            older = newer
            newer = [:]
        }
        newer[hash] = note
    }
}
