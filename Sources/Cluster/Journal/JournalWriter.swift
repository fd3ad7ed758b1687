import Ground

/// Makes the effects of one write of the journal, and what it becomes by them.
struct JournalWriter {
    private let node: NodeID
    private let epoch: UInt64
    private let fileBytesMax: Int
    private var plan: JournalPlan
    private var effects: [JournalEffect] = []
    /// What is to be appended to the open file, of which this much was synced before.
    private var unwritten: [UInt8] = []
    private var synced = 0
    private var line = JournalLine(salt: 0)

    init(_ journal: Journal, _ plan: JournalPlan) {
        (node, epoch) = (journal.node, journal.epoch)
        fileBytesMax = journal.settings.fileBytesMax
        self.plan = plan
        line = JournalLine(salt: plan.salt)
        synced = plan.files.last?.end ?? 0
    }

    typealias Marks = (_ after: Stamp, _ upTo: Stamp) -> [[UInt8]]

    mutating func write(_ batch: [LogWrite], _ marks: Marks, using dice: inout Dice) {
        // Before anything is written: what says that they do not count is synced.
        let last = plan.files.last?.number ?? 0
        for number in plan.doomed.keys.sorted(by: >) {
            effects.append(.delete(number))
            // One of a write that failed goes for good before what it was to go on from.
            if number > last { effects.append(.syncNames) }
        }
        plan.doomed.removeAll()
        if !plan.isOpen { beginFile(marks, using: &dice) }
        for note in batch.prefix(while: \.isNote) {
            put(JournalItem.items(of: note), marks, using: &dice)
        }
        release(marks, using: &dice)
        for write in batch.drop(while: \.isNote) {
            put(JournalItem.items(of: write), marks, using: &dice)
        }
    }

    /// Lets the files go that need not be kept any more, once it is said what they had invalidated.
    private mutating func release(_ marks: Marks, using dice: inout Dice) {
        let before = plan.state.released
        let gone = takeGone()
        guard !gone.isEmpty else { return }
        let after = plan.state.released
        for piece in after > before ? marks(before, after) : [] {
            put([.marks(piece, upTo: after)], marks, using: &dice)
        }
        put([.gone(gone)], marks, using: &dice)
    }

    /// What there is after them, and the effects.
    consuming func finish() -> (JournalPlan, [JournalEffect]) {
        endAppend()
        return (plan, effects)
    }

    /// Appends items that go into one file.
    private mutating func put(_ items: [JournalItem], _ marks: Marks, using dice: inout Dice) {
        let coded = items.map(\.coded)
        let last = plan.files.count - 1
        let used = plan.files[last].bytesCount - plan.itemsStart
        let needed = coded.reduce(0) { $0 + JournalLine.bytesCount($1.content) }
        if used > 0, used + needed > fileBytesMax {
            endAppend()
            beginFile(marks, using: &dice)
        }
        for (item, coded) in zip(items, coded) { append(item, coded) }
    }

    private mutating func append(
        _ item: JournalItem, _ coded: (kind: JournalItem.Kind, content: [UInt8])
    ) {
        let last = plan.files.count - 1
        let offset = plan.files[last].bytesCount
        line.append(
            coded.kind, coded.content, synced: synced, to: &unwritten,
            start: offset - unwritten.count)
        plan.files[last].bytesCount += JournalLine.bytesCount(coded.content)
        let place = JournalPlace(file: plan.files[last].number, offset: UInt64(offset))
        plan.state.take(item, at: place, epoch: epoch)
        switch item {
        case .record(let record, let count):
            plan.files[last].holds(record.name)
            plan.files[last].reaches(Stamp(epoch: epoch, count: count))
        case .floor(_, let count), .local(_, let count):
            plan.files[last].reaches(Stamp(epoch: epoch, count: count))
        case .forgotten(let processes):
            for process in processes { plan.files[last].greatest.forget(process) }
        default: break
        }
    }

    /// Appends and syncs what is to be in the open file.
    private mutating func endAppend() {
        guard !unwritten.isEmpty, let last = plan.files.last else { return }
        effects += [.append(last.number, unwritten.takeAll()), .sync(last.number)]
        synced = last.bytesCount
        plan.files[plan.files.count - 1].end = synced
    }

    /// Begins the next file: the header is synced alone, so that a file that is longer has one.
    private mutating func beginFile(_ marks: Marks, using dice: inout Dice) {
        let number = plan.nextNumber
        let header = JournalHeader(
            node: node, number: number, epoch: epoch, salt: dice.next(),
            previous: plan.files.last?.place)
        let size = JournalHeader.bytesCount
        effects += [.create(number), .append(number, header.bytes), .sync(number)]
        _ = takeGone()
        plan.state.forgetVoids(before: plan.files.first?.number ?? .max)
        let files = plan.files.map(\.place)
        plan.files.append(JournalFile(number: number, end: size, bytesCount: size))
        plan.nextNumber += 1
        plan.isOpen = true
        plan.salt = header.salt
        line = JournalLine(salt: header.salt)
        synced = size
        let state = plan.state
        let pieces = state.released > .zero ? marks(.zero, state.released) : []
        for item in state.items(files: files, marks: pieces) { append(item, item.coded) }
        plan.itemsStart = plan.files[plan.files.count - 1].bytesCount
    }

    /// Takes the files out that need not be kept any more; they are deleted with the next write.
    private mutating func takeGone() -> [UInt64] {
        var gone: [UInt64] = []
        for (index, file) in plan.files.enumerated() {
            let isLast = plan.isOpen && index == plan.files.count - 1
            guard !isLast, file.needed(plan.state).isEmpty else { continue }
            gone.append(file.number)
            plan.doomed[file.number] = file.bytesCount
            plan.state.release(file.reached)
        }
        plan.files.removeAll { gone.contains($0.number) }
        return gone
    }
}
