import FuzzSupport

/// Files of the journal of any bytes: the lowest bit of the first says whether their checksums are
/// made right.
///
/// Held: whatever the bytes, a start ends, reads no record that cannot be read again, and a log
/// takes what it found; what is written behind it is found by the next start without damage, with
/// all that the first one found.
private func fuzz(_ input: [UInt8]) {
    ForgedJournal(input[1...], isSealed: input[0] & 1 == 1).check()
}

/// The program's start.
@c(fuzz_journal_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, atLeast: 3, fuzz)
}
