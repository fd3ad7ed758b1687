import Cluster
import Ground
import Testing

@Suite("Who waits for a receipt is told once, when its record has come far enough")
struct ReceiptWaitersTests {
    private let stream = ProcessID(high: 1, low: 1)
    private let other = ProcessID(high: 2, low: 2)

    private func name(_ number: UInt64, _ stream: ProcessID? = nil) -> RecordID {
        RecordID(stream: stream ?? self.stream, number: number)
    }

    @Test("all up to the number that was reached are told, in whatever order they came")
    func upTo() {
        var waiters = ReceiptWaiters<Int>()
        for number in [4, 1, 3, 2] {
            _ = waiters.add(number, for: name(UInt64(number)), awaitsAll: true)
        }
        #expect(Set(waiters.removeCompleted { name, _ in name.number <= 2 }) == [1, 2])
        #expect(waiters.removeCompleted { name, _ in name.number <= 2 }.isEmpty)
        #expect(!waiters.isEmpty)
        #expect(Set(waiters.removeCompleted { _, _ in true }) == [3, 4])
        #expect(waiters.isEmpty)
    }

    @Test("who waits for all does not hold up who waits for one, nor one stream another")
    func apart() {
        var waiters = ReceiptWaiters<String>()
        _ = waiters.add("all", for: name(1), awaitsAll: true)
        _ = waiters.add("one", for: name(2), awaitsAll: false)
        _ = waiters.add("other", for: name(9, other), awaitsAll: true)
        #expect(waiters.removeCompleted { !$1 && $0.stream == stream } == ["one"])
        #expect(waiters.removeCompleted { $0.stream == other && $1 } == ["other"])
        #expect(waiters.removeCompleted { $1 && $0.number == 1 } == ["all"])
        #expect(waiters.isEmpty)
    }

    @Test("however many wait, one step asks about the first of each line that is not over")
    func asksFew() {
        var waiters = ReceiptWaiters<UInt64>()
        for number in 1...1_000 as ClosedRange<UInt64> {
            _ = waiters.add(number, for: name(number), awaitsAll: true)
        }
        var asked = 0
        let taken = waiters.removeCompleted { name, _ in
            asked += 1
            return name.number <= 3
        }
        #expect(taken == [1, 2, 3] && asked == 4)
    }

    @Test("who waits no longer is not told, and nothing of it is kept")
    func removed() {
        var waiters = ReceiptWaiters<Int>()
        let tickets = [5, 5, 7].enumerated().map { index, number in
            waiters.add(index, for: name(UInt64(number)), awaitsAll: true)
        }
        waiters.remove(tickets[1])
        waiters.remove(tickets[1])
        #expect(waiters.removeCompleted { name, _ in name.number <= 5 } == [0])
        waiters.remove(tickets[0])
        waiters.remove(tickets[2])
        #expect(waiters.isEmpty)
    }
}
