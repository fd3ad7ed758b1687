/// Journal files of arbitrary bytes: the lowest bit of the first says whether their checksums are
/// corrected.
///
/// Invariants: for any bytes, a start terminates, returns no record that cannot be read again, and
/// a log accepts what it found; writes after it are found by the next start without damage, with
/// all that the first one found.
func fuzzJournal(_ input: [UInt8]) {
    ForgedJournal(input[1...], isSealed: input[0] & 1 == 1).check()
}
