import Front
import Testing

@Suite("A fair queue")
struct FairQueueTests {
    @Test("Holders alternate, and items of one holder are in order")
    func rotation() {
        var line = FairQueue<String, Int>()
        for number in 1...4 { line.append(number, of: "greedy") }
        line.append(10, of: "late")
        line.append(20, of: "last")
        line.append(11, of: "late")
        #expect(taken(from: &line) == [1, 10, 20, 2, 11, 3, 4])
        #expect(line.isEmpty && line.next() == nil)
    }

    @Test("A holder that returns waits for one item of every other holder")
    func again() {
        var line = FairQueue<String, Int>()
        for number in 1...3 { line.append(number, of: "greedy") }
        line.append(10, of: "other")
        #expect(line.next() == 1)
        #expect(line.next() == 10)
        line.append(11, of: "other")
        #expect(taken(from: &line) == [2, 11, 3])
    }

    private func taken(from line: inout FairQueue<String, Int>) -> [Int] {
        var taken: [Int] = []
        while let next = line.next() { taken.append(next) }
        return taken
    }
}
