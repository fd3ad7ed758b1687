/// What an operator should be told of the disk tier; each is one line in the log.
package enum DiskEvent: Hashable, Sendable {
    /// A log was taken over; `scanned` of its segments had not been closed.
    case logOpened(path: String, entries: Int, segments: Int, scanned: Int)
    /// Nothing in the file can be used; it is used anew.
    case fileDiscarded(file: String, why: String)
    /// Records at these offsets of the file do not check; the others are kept.
    case recordsCorrupt(file: String, offsets: [UInt64])
    /// A record that was asked for is lost.
    case recordLost(file: String, offset: Int, why: String)
    /// Every entry is held against its origin once.
    case revalidationRequired(why: String)
    /// So many invalidations had no room and have become one, for everything that is older than the
    /// latest of them.
    case marksFolded(marks: Int)
    /// The tier is off until it can be used again.
    case storeFailed(why: String)
    /// It can be used again.
    case storeRecovered

    /// What has happened, in words that are the same each time.
    package var message: String {
        switch self {
        case .logOpened: "disk log opened"
        case .fileDiscarded: "a file of the disk log is not used"
        case .recordsCorrupt: "records on disk are lost: their checksums do not fit"
        case .recordLost: "a record on disk is lost"
        case .revalidationRequired: "every entry on disk is revalidated once"
        case .marksFolded:
            "too many invalidations: what is older than half of them is revalidated once"
        case .storeFailed: "the disk tier is off until the fault goes"
        case .storeRecovered: "the disk tier is back"
        }
    }

    /// What it has happened to, and why.
    package var fields: [String: String] {
        switch self {
        case .logOpened(let path, _, _, _): ["path": path]
        case .fileDiscarded(let file, let why): ["file": file, "why": why]
        case .recordsCorrupt(let file, let offsets):
            ["file": file, "offsets": offsets.prefix(16).map(String.init).joined(separator: ",")]
        case .recordLost(let file, _, let why): ["file": file, "why": why]
        case .revalidationRequired(let why), .storeFailed(let why): ["why": why]
        case .marksFolded, .storeRecovered: [:]
        }
    }

    /// How many, and where.
    package var numericFields: [String: Int] {
        switch self {
        case .logOpened(_, let entries, let segments, let scanned):
            ["entries": entries, "segments": segments, "scanned": scanned]
        case .recordsCorrupt(_, let offsets): ["records": offsets.count]
        case .recordLost(_, let offset, _): ["offset": offset]
        case .marksFolded(let marks): ["marks": marks]
        case .fileDiscarded, .revalidationRequired, .storeFailed, .storeRecovered: [:]
        }
    }

    /// True for what an operator may have to act on.
    package var isWarning: Bool {
        switch self {
        case .logOpened, .storeRecovered: false
        case .fileDiscarded, .recordsCorrupt, .recordLost, .revalidationRequired, .marksFolded,
            .storeFailed:
            true
        }
    }
}
