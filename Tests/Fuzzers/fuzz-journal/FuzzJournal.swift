import FuzzSupport

/// Files of the journal as a disk may give them back: the first byte chooses between files of any
/// bytes, the same with their checksums made right, and a journal that was written and then
/// damaged, or torn in its last write.
///
/// Held: whatever the bytes, a start ends, reads no record that cannot be read again, and a log
/// takes what it found; what is written behind it is found by the next start without damage, with
/// all that the first one found. Of what was synced nothing is missing, other or twice with two
/// contents unless the start finds damage; what was torn in the last write is none.
@c(LLVMFuzzerTestOneInput)
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let start = unsafe start, count > 2 else { return 0 }
    let input = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    let rest = input[1...]
    switch input[0] & 3 {
    case 0: ForgedJournal(rest, isSealed: false).check()
    case 1: ForgedJournal(rest, isSealed: true).check()
    case 2:
        var journal = WrittenJournal(rest)
        journal.write()
        journal.damageAndCheck()
    default:
        var journal = WrittenJournal(rest)
        journal.write()
        journal.tearAndCheck()
    }
    return 0
}

/// The program's start.
@c(fuzz_journal_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, fuzz)
}
