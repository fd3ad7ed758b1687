import Ground
import Tiers

/// The marks that no disk has, with the texts that they are hashed from: by which key is not known
/// before a disk is opened.
struct UnwrittenMarks {
    /// In the order in which they were applied.
    private(set) var marks: [DiskMark] = []
    /// The stamp of the first one that came; nil if there is none.
    private(set) var first: Stamp?
    private var bytes = 0

    /// What they may take of memory; then one soft mark for everything stands for the oldest half.
    ///
    /// Room for 100,000 URLs of 90 bytes.
    static let bytesMax = 16 << 20
    /// What a mark takes beside its text.
    private static let overheadBytes = 72

    mutating func append(_ mark: DiskMark) {
        first = first ?? mark.stamp
        marks.append(mark)
        bytes += Self.bytes(mark)
    }

    mutating func takeAll() -> [DiskMark] {
        defer { self = UnwrittenMarks() }
        return marks
    }

    /// Stamps are of `epoch` from now on.
    mutating func begin(epoch: UInt64) {
        for index in marks.indices { marks[index].stamp.epoch = epoch }
        first?.epoch = epoch
    }

    /// The latest stamp of those that were folded, and how many they were; nil if there was no
    /// need.
    mutating func foldWhatIsTooMuch() -> (last: Stamp, count: Int)? {
        guard bytes > Self.bytesMax, let last = marks.prefix(marks.count / 2).last?.stamp else {
            return nil
        }
        let before = marks.count
        // Those of one stamp have one fate.
        marks.removeAll { $0.stamp <= last }
        let count = before - marks.count
        marks.insert(DiskMark(.everything, isSoft: true, stamp: last), at: 0)
        bytes = marks.reduce(0) { $0 + Self.bytes($1) }
        return (last, count)
    }

    private static func bytes(_ mark: DiskMark) -> Int {
        switch mark.target {
        case .entry, .everything: overheadBytes
        case .url(let text), .prefix(let text), .host(let text), .tag(let text):
            overheadBytes + text.count
        }
    }
}
