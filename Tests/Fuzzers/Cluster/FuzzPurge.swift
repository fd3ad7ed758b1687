/// Purges of clients of the admin port, and records of the log: the first byte selects the body of
/// a purge, its target, the content of a record, or a whole record.
///
/// Invariants: no bytes trap; an accepted body stays the same when it is written in canonical form,
/// and its purge fits in a record with the same meaning; the content of a record is always decoded,
/// is the same when it is written again, and if it is not understood it is kept byte by byte; a
/// name of a receipt has one spelling.
func fuzzPurge(_ input: [UInt8]) {
    let rest = Array(input[1...])
    switch input[0] & 3 {
    case 0: readBody(rest)
    case 1: readTarget(rest)
    case 2: readContent(rest)
    default:
        readRecord(rest)
        var sealed = rest
        sealed.sealLogRecord(in: 0..<sealed.count)
        readRecord(sealed)
    }
}
