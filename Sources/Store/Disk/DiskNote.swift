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
    /// The tier is off until it can be used again.
    case failed(why: String)
    /// It can be used again.
    case returned

    /// One line without a full stop.
    package var text: String {
        switch self {
        case .opened(let path, let entries, let segments, let scanned):
            "disk log \(path): \(entries) entries in \(segments) segments, \(scanned) not closed"
        case .discarded(let file, let why): "\(file) is not used: \(why)"
        case .damaged(let file, let offsets):
            "\(file): \(offsets.count) records are lost, their checksums do not fit, at "
                + offsets.prefix(16).map(String.init).joined(separator: ", ")
        case .lost(let file, let offset, let why):
            "\(file): the record at \(offset) is lost: \(why)"
        case .revalidatesAll(let why): "every entry on disk is revalidated once: \(why)"
        case .failed(let why): "the disk tier is off until the fault goes: \(why)"
        case .returned: "the disk tier is back"
        }
    }

    /// True for what an operator may have to act on.
    package var isWarning: Bool {
        switch self {
        case .opened, .returned: false
        case .discarded, .damaged, .lost, .revalidatesAll, .failed: true
        }
    }
}
