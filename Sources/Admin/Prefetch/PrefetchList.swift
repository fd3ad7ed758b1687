package import Ground

/// The prefetches of a node: those that run, and the last that are over.
package struct PrefetchList: Sendable {
    /// Why another one is not begun.
    package enum Refusal: Error, Hashable, Sendable {
        /// ``runningMax`` run.
        case tooMany
    }

    /// A task, and the prefetch that it is of.
    package struct Step: Hashable, Sendable {
        package let name: String
        package let accept: String
        package let task: Prefetch.Task
    }

    /// Prefetches that run at once.
    package static let runningMax = 4
    /// Prefetches that are over and still shown.
    package static let keptMax = 16

    /// The oldest first.
    private var prefetches: [Prefetch] = []

    package init() {}

    /// The newest first.
    package func documents(at now: Instant) -> [PrefetchDocument] {
        prefetches.reversed().map { $0.document(at: now) }
    }

    package func document(_ name: String, at now: Instant) -> PrefetchDocument? {
        prefetches.first { $0.name == name }?.document(at: now)
    }

    /// Nothing is to be asked now or later, unless another one begins.
    package var isIdle: Bool { prefetches.allSatisfy(\.isOver) }

    /// `name` must be one that was not used before.
    package mutating func begin(
        _ request: PrefetchRequest, name: String, at now: Instant
    ) throws(Refusal) -> PrefetchDocument {
        guard prefetches.count(where: { !$0.isOver }) < Self.runningMax else { throw .tooMany }
        let quiet = prefetches.indices.filter { prefetches[$0].isQuiet }
        for index in quiet.prefix(max(0, quiet.count - Self.keptMax + 1)).reversed() {
            prefetches.remove(at: index)
        }
        let prefetch = Prefetch(request, name: name, at: now)
        prefetches.append(prefetch)
        return prefetch.document(at: now)
    }

    /// What can be begun now.
    package mutating func take(at now: Instant) -> [Step] {
        var steps: [Step] = []
        for index in prefetches.indices {
            while let task = prefetches[index].take(at: now) {
                steps.append(
                    Step(
                        name: prefetches[index].name, accept: prefetches[index].accept, task: task))
            }
        }
        return steps
    }

    /// Gives the prefetch's document if this was its end.
    package mutating func ended(
        _ step: Step, _ ending: Prefetch.Ending, at now: Instant
    ) -> PrefetchDocument? {
        guard let index = prefetches.firstIndex(where: { $0.name == step.name }) else { return nil }
        let wasOver = prefetches[index].isOver
        prefetches[index].ended(step.task, ending, at: now)
        return !wasOver && prefetches[index].isOver ? prefetches[index].document(at: now) : nil
    }

    /// Nil if there is no such one, or it is over.
    package mutating func cancel(_ name: String, at now: Instant) -> PrefetchDocument? {
        guard let index = prefetches.firstIndex(where: { $0.name == name && !$0.isOver }) else {
            return nil
        }
        prefetches[index].cancel(at: now)
        return prefetches[index].document(at: now)
    }

    /// Gives the documents of those that were not over.
    package mutating func cancelAll(at now: Instant) -> [PrefetchDocument] {
        prefetches.filter { !$0.isOver }.compactMap { cancel($0.name, at: now) }
    }
}
