package import Ground

/// The prefetches of a node: those that run, and the last that are over.
package struct PrefetchJobTable: Sendable {
    /// Why another one is not begun.
    package enum StartError: Error, Hashable, Sendable {
        /// ``runningMax`` run.
        case tooManyRunning
    }

    /// A task, and the prefetch that it is of.
    package struct ScheduledItem: Hashable, Sendable {
        package let name: String
        package let accept: String
        package let task: PrefetchJob.Item
    }

    /// Prefetches that run at once.
    package static let runningMax = 4
    /// Prefetches that are over and still shown.
    package static let finishedMax = 16

    /// The oldest first.
    private var jobs: [PrefetchJob] = []

    package init() {}

    /// The newest first.
    package func documents(at now: Instant) -> [PrefetchDocument] {
        jobs.reversed().map { $0.document(at: now) }
    }

    package func document(_ name: String, at now: Instant) -> PrefetchDocument? {
        jobs.first { $0.name == name }?.document(at: now)
    }

    /// Nothing is to be asked now or later, unless another one begins.
    package var areAllFinished: Bool { jobs.allSatisfy(\.isFinished) }

    /// `name` must be one that was not used before.
    package mutating func start(
        _ request: PrefetchRequest, name: String, at now: Instant
    ) throws(StartError) -> PrefetchDocument {
        guard jobs.count(where: { !$0.isFinished }) < Self.runningMax else { throw .tooManyRunning }
        let quiet = jobs.indices.filter { jobs[$0].isDrained }
        for index in quiet.prefix(max(0, quiet.count - Self.finishedMax + 1)).reversed() {
            jobs.remove(at: index)
        }
        let prefetch = PrefetchJob(request, name: name, at: now)
        jobs.append(prefetch)
        return prefetch.document(at: now)
    }

    /// What can be begun now.
    package mutating func dequeue(at now: Instant) -> [ScheduledItem] {
        var steps: [ScheduledItem] = []
        for index in jobs.indices {
            while let task = jobs[index].dequeue(at: now) {
                steps.append(
                    ScheduledItem(
                        name: jobs[index].name, accept: jobs[index].accept, task: task))
            }
        }
        return steps
    }

    /// Gives the prefetch's document if this was its end.
    package mutating func itemFinished(
        _ step: ScheduledItem, _ ending: PrefetchJob.ItemOutcome, at now: Instant
    ) -> PrefetchDocument? {
        guard let index = jobs.firstIndex(where: { $0.name == step.name }) else { return nil }
        let wasOver = jobs[index].isFinished
        jobs[index].itemFinished(step.task, ending, at: now)
        return !wasOver && jobs[index].isFinished ? jobs[index].document(at: now) : nil
    }

    /// Nil if there is no such one, or it is over.
    package mutating func cancel(_ name: String, at now: Instant) -> PrefetchDocument? {
        guard let index = jobs.firstIndex(where: { $0.name == name && !$0.isFinished }) else {
            return nil
        }
        jobs[index].cancel(at: now)
        return jobs[index].document(at: now)
    }

    /// Gives the documents of those that were not over.
    package mutating func cancelAll(at now: Instant) -> [PrefetchDocument] {
        jobs.filter { !$0.isFinished }.compactMap { cancel($0.name, at: now) }
    }
}
