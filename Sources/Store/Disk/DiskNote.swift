/// What an operator should be told of the disk tier; each is one line in the log.
package enum DiskNote: Hashable, Sendable {
    /// A log was taken over; `scanned` of its segments had not been closed.
    case opened(path: String, entries: Int, segments: Int, scanned: Int)
    /// Nothing in the file can be used; it is used anew.
    case discarded(file: String, why: String)
    /// Records at these offsets of the file do not check; the others are kept.
    case damaged(file: String, offsets: [UInt64])
    /// A record that was asked for is lost.
    case lost(file: String, offset: Int, why: String)
    /// Every entry is held against its origin once.
    case revalidatesAll(why: String)
    /// So many invalidations had no room and have become one, for everything that is older than the
    /// latest of them.
    case folded(marks: Int)
    /// The tier is off until it can be used again.
    case failed(why: String)
    /// It can be used again.
    case returned

    /// What has happened, in words that are the same each time.
    package var text: String {
        switch self {
        case .opened: "disk log opened"
        case .discarded: "a file of the disk log is not used"
        case .damaged: "records on disk are lost: their checksums do not fit"
        case .lost: "a record on disk is lost"
        case .revalidatesAll: "every entry on disk is revalidated once"
        case .folded: "too many invalidations: what is older than half of them is revalidated once"
        case .failed: "the disk tier is off until the fault goes"
        case .returned: "the disk tier is back"
        }
    }

    /// What it has happened to, and why.
    package var texts: [String: String] {
        switch self {
        case .opened(let path, _, _, _): ["path": path]
        case .discarded(let file, let why): ["file": file, "why": why]
        case .damaged(let file, let offsets):
            ["file": file, "offsets": offsets.prefix(16).map(String.init).joined(separator: ",")]
        case .lost(let file, _, let why): ["file": file, "why": why]
        case .revalidatesAll(let why), .failed(let why): ["why": why]
        case .folded, .returned: [:]
        }
    }

    /// How many, and where.
    package var numbers: [String: Int] {
        switch self {
        case .opened(_, let entries, let segments, let scanned):
            ["entries": entries, "segments": segments, "scanned": scanned]
        case .damaged(_, let offsets): ["records": offsets.count]
        case .lost(_, let offset, _): ["offset": offset]
        case .folded(let marks): ["marks": marks]
        case .discarded, .revalidatesAll, .failed, .returned: [:]
        }
    }

    /// True for what an operator may have to act on.
    package var isWarning: Bool {
        switch self {
        case .opened, .returned: false
        case .discarded, .damaged, .lost, .revalidatesAll, .folded, .failed: true
        }
    }
}
