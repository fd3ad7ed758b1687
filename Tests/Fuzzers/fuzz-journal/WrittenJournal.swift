import Cluster
import FuzzSupport
import Ground

/// A journal that is written as the input says, and then what becomes of its files.
struct WrittenJournal {
    private var script: FuzzScript
    private var disk = JournalFiles()
    private var journal: Journal
    private var epoch: UInt64 = 1
    private var dice = Dice(seed: 3)
    /// What is written with the next write.
    private var notes: [LogNote] = [
        .memory(CountedMembers.Memory(standing: nil, joins: 1, needs: nil, records: []))
    ]
    /// The greatest number of each stream.
    private var heads: [ProcessID: UInt64] = [:]
    private var count: UInt64 = 0
    private var written: Set<RecordPrint> = []
    /// Of streams that were not forgotten since.
    private var synced: Set<RecordPrint> = []

    private static let stepsMax = 40
    /// Places that change, each of some bytes.
    private static let changesMax = 16

    /// Small files, so that a few records fill one.
    private static let settings = Journal.Settings(fileBytesMax: 4_096, bytesMax: 1 << 20)

    init(_ input: ArraySlice<UInt8>) {
        script = FuzzScript(input)
        journal = Journal(node: JournalStart.node, epoch: 1, settings: Self.settings)
    }

    // MARK: Writing

    /// Ends with a write that succeeds, and with nothing noted.
    mutating func write() {
        for _ in 0..<Self.stepsMax {
            let step = script.next()
            switch step & 7 {
            case 0:
                run([])
                return run([])
            case 1...3: run(batch(Int(step >> 3)))
            case 4: fail(batch(Int(step >> 3)))
            case 5: note(step >> 3)
            case 6: restart()
            default: run([])
            }
        }
        run([])
        run([])
    }

    private func process(_ number: UInt8) -> ProcessID {
        ProcessID(high: 1, low: UInt64(number & 3))
    }

    private mutating func batch(_ length: Int) -> [LogWrite] {
        (0...length & 7).map { _ in
            let byte = script.next()
            count += 1
            let process = process(byte)
            let number = (heads[process] ?? 0) + (byte & 4 == 0 ? 1 : 2)
            heads[process] = number
            if byte >> 3 == 1 {
                return .floor(StreamPosition(process: process, count: number), count: count)
            }
            let content = Array(repeating: byte, count: Int(byte >> 3) * 16)
            let record = InvalidationRecord(
                RecordName(stream: process, number: number), content: content)
            written.insert(RecordPrint(record))
            return .record(record, count: count)
        }
    }

    private mutating func note(_ what: UInt8) {
        let process = process(what)
        let head = heads[process] ?? 0
        guard head > 0 else { return }
        let position = StreamPosition(process: process, count: head)
        switch what >> 2 {
        case 0, 1: notes.append(.retired(position))
        case 2:
            notes.append(.forgotten(process))
            synced = synced.filter { $0.name.stream != process }
        default:
            let count = max(1, head - min(head, UInt64(what >> 2)))
            notes.append(.dropped(StreamPosition(process: process, count: count)))
        }
    }

    /// What the journal wants done for the batch, behind what was noted; of its marks a piece is
    /// kept that says nothing.
    private mutating func effects(_ batch: [LogWrite]) -> [JournalEffect]? {
        journal.write(
            notes.map { .note($0) } + batch, marks: { _, _ in [[1, 2, 3]] }, using: &dice)
    }

    private mutating func run(_ batch: [LogWrite]) {
        guard let effects = effects(batch) else {
            preconditionFailure("no room in a megabyte")
        }
        for effect in effects { disk.run(effect) }
        journal.synced()
        notes = []
        for case .record(let record, _) in batch { synced.insert(RecordPrint(record)) }
    }

    /// What a start finds that must find all that was synced.
    private func wholeStart() -> JournalStart {
        let start = JournalStart(disk.contents)
        precondition(start.found.damage.isEmpty, "damage where there is none")
        precondition(written.isSuperset(of: start.records), "a record that nobody wrote")
        let found = start.records
        for record in synced where record.name.number > start.end(of: record.name.stream) {
            precondition(found.contains(record), "a record that was synced is missing")
        }
        return start
    }

    /// Some of the effects are done, and the batch is written again.
    private mutating func fail(_ batch: [LogWrite]) {
        guard let effects = effects(batch) else { return }
        let done = script.number(below: effects.count + 1)
        for effect in effects.prefix(done) { disk.run(effect) }
        journal.failed()
        run(batch)
    }

    private mutating func restart() {
        let start = wholeStart()
        epoch += 1
        journal = Journal(
            node: JournalStart.node, epoch: epoch, settings: Self.settings,
            recovered: start.found)
        run([])
    }

    // MARK: What becomes of it

    /// Changes bytes of what was synced; of the newest file those that something stands behind
    /// which was written later.
    mutating func damageAndCheck() {
        let whole = wholeStart()
        var damaged = disk
        for _ in 0..<Self.changesMax where !script.isAtEnd { damage(&damaged) }
        let start = JournalStart(damaged.contents)
        start.checkRecords()
        precondition(written.isSuperset(of: start.records), "a record that nobody wrote")
        let names = Set(start.kept.records.map(\.name))
        precondition(names.count == start.records.count, "one number with two contents")
        if start.found.damage.isEmpty {
            precondition(start.content == whole.content, "damage that was not found")
        }
        start.checkGoingOn(Self.settings)
    }

    private mutating func damage(_ files: inout JournalFiles) {
        let numbers = disk.contents.keys.sorted()
        guard let newest = numbers.last else { return }
        precondition(newest == disk.lastAppend.file, "another file goes on")
        let what = script.next()
        let number = numbers[script.number(below: numbers.count)]
        let isNewest = number == newest
        let size = files.contents[number]?.count ?? 0
        let limit = isNewest ? disk.lastAppend.start : size
        guard limit > 0 else { return }
        let place = script.number(below: limit)
        let end = min(limit, place + 64)
        let other = disk.contents[numbers[0]] ?? []
        switch what & 7 {
        case 0 where !isNewest: files.lose(number)
        case 1 where !isNewest: files.change(number) { $0.removeLast(size - place) }
        case 2: files.change(number) { for index in place..<end { $0[index] = 0 } }
        case 3:
            files.change(number) {
                for index in place..<end where index < other.count { $0[index] = other[index] }
            }
        default: files.change(number) { $0[place] ^= what | 1 }
        }
    }

    /// The power fails in the midst of one write more.
    mutating func tearAndCheck() {
        let batch = batch(Int(script.next()))
        guard let effects = effects(batch) else { return }
        let last = script.number(below: effects.count)
        for effect in effects.prefix(last) { disk.run(effect) }
        if case .append(let number, let bytes) = effects[last] {
            disk.run(.append(number, torn(bytes)))
        }
        let start = wholeStart()
        start.checkRecords()
        start.checkGoingOn(Self.settings)
    }

    /// What of the bytes may be on the disk.
    private mutating func torn(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = Array(bytes.prefix(script.number(below: bytes.count + 1)))
        let stale = disk.contents.min { $0.key < $1.key }?.value ?? []
        for _ in 0..<Self.changesMax where !script.isAtEnd && !bytes.isEmpty {
            let what = script.next()
            let place = script.number(below: bytes.count)
            for index in place..<min(bytes.count, place + 64) {
                switch what & 3 {
                case 0: bytes[index] = 0
                case 1: bytes[index] = index < stale.count ? stale[index] : what
                default: bytes[index] = bytes[index] &+ what
                }
            }
        }
        return bytes
    }
}
