package import Ground

/// The objects that are not stored here and were asked for in part of late, by the keyed hashes of
/// their keys.
///
/// The first who wants a part gets it from the origin as a part; who wants one again soon has the
/// whole fetched, so that it is stored, unless it is known not to be fit for that.
///
/// Bounded by two generations: the older one is forgotten when the newer one is full. What is
/// forgotten costs no more than that the next part is again the first.
package struct PartTable: Sendable {
    /// What is known of the whole of an object.
    package enum Whole: Hashable, Sendable {
        /// The origin has not said how large it is.
        case unknown
        /// It may be stored, and has so many bytes.
        case storable(bytes: UInt64)
        /// It is larger than what is stored, or may not be stored.
        case unfit

        /// It costs an origin hardly more than a part of it.
        package var isSmall: Bool {
            if case .storable(let bytes) = self { bytes <= PartTable.smallBytesMax } else { false }
        }
    }

    /// What the origin is asked for where a part is wanted.
    package enum Question: Hashable, Sendable {
        case part
        case whole
    }

    private struct Note {
        var whole = Whole.unknown
        /// When a part was last wanted; nil if only the whole is known.
        var wantedAt: Instant?
    }

    package static let smallBytesMax: UInt64 = 4 << 20
    /// Within which time another part counts as one of the same object again.
    package static let again = Interval.seconds(60)

    private let notesMax: Int
    private var newer: [UInt64: Note] = [:]
    private var older: [UInt64: Note] = [:]

    /// A table of at most twice `notesMax` objects.
    package init(notesMax: Int = 8192) {
        self.notesMax = notesMax
    }

    package var count: Int { newer.count + older.keys.count { newer[$0] == nil } }

    /// A part of an object is wanted that neither memory nor disk has.
    package mutating func wanted(_ hash: UInt64, now: Instant) -> Question {
        var note = note(hash)
        let isAgain = note.wantedAt.map { now - $0 < Self.again } ?? false
        note.wantedAt = now
        put(note, hash)
        return isAgain && note.whole != .unfit ? .whole : .part
    }

    /// An answer of the origin's tells what the whole of an object is.
    package mutating func learned(_ whole: Whole, of hash: UInt64) {
        var note = note(hash)
        note.whole = whole
        put(note, hash)
    }

    private func note(_ hash: UInt64) -> Note { newer[hash] ?? older[hash] ?? Note() }

    private mutating func put(_ note: Note, _ hash: UInt64) {
        if newer.count >= notesMax, newer[hash] == nil {
            older = newer
            newer = [:]
        }
        newer[hash] = note
    }
}
