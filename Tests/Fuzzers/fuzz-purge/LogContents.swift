import Cluster
import Ground

/// Reads, writes and reads again what a record says.
func readContent(_ content: [UInt8]) {
    let read = UnsafeMethodInvalidation(content: content.span)
    switch read.action {
    case .foreign(let kept):
        precondition(kept == content, "what is not understood was changed")
        precondition(read.purge == .everythingSoft)
    case .count: precondition(read.id.isEmpty, "a record of the count with a client's id")
    case .purge(let purge):
        precondition(!read.id.isEmpty && !purge.targets.isEmpty)
        precondition(read.id.count <= UnsafeMethodInvalidation.idBytesMax)
    }
    let written: [UInt8]
    do throws(InvalidationFault) {
        written = try read.content()
    } catch {
        precondition(isAboveLimit(read), "what was read cannot be written: \(error)")
        return
    }
    precondition(
        UnsafeMethodInvalidation(content: written.span) == read,
        "another content when written again")
}

/// Records of another version may say more than this one puts in them.
private func isAboveLimit(_ read: UnsafeMethodInvalidation) -> Bool {
    guard case .purge(let purge) = read.action else { return false }
    return purge.targets.count > UnsafeMethodInvalidation.targetsMax
}

/// Reads, writes and reads again a record with its name and its hash.
func readRecord(_ bytes: [UInt8]) {
    guard let record = InvalidationRecord.read(bytes.span) else { return }
    precondition(record.name.number > 0)
    let written = record.bytes
    precondition(written.count == record.bytesCount && written.count <= bytes.count)
    precondition(
        InvalidationRecord.read(written.span) == record, "another record when written again")
    readContent(record.content)
}
