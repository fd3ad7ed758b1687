package import Ground

/// The prefetch jobs of a node: the running ones, and the last finished ones.
package struct PrefetchJobTable: Sendable {
    /// The reason why a job cannot be started.
    package enum StartError: Error, Hashable, Sendable {
        /// As many jobs as ``runningMax`` are running.
        case tooManyRunning
    }

    /// An item to request, with its job.
    package struct ScheduledItem: Hashable, Sendable {
        /// The name of the job.
        package let name: String
        /// The value of Accept for the request.
        package let accept: String
        /// The item.
        package let task: PrefetchJob.Item
    }

    /// The maximum number of jobs running at once.
    package static let runningMax = 4
    /// The maximum number of finished jobs that are kept.
    package static let finishedMax = 16

    /// The jobs, the oldest first.
    private var jobs: [PrefetchJob] = []

    /// Creates an empty table.
    package init() {}

    /// Returns the documents of all jobs, the newest first.
    package func documents(at now: Instant) -> [PrefetchDocument] {
        jobs.reversed().map { $0.document(at: now) }
    }

    /// Returns the document of a job; `nil` if there is no job of this name.
    package func document(_ name: String, at now: Instant) -> PrefetchDocument? {
        jobs.first { $0.name == name }?.document(at: now)
    }

    /// True if no job is running or reading its sitemap.
    package var areAllFinished: Bool { jobs.allSatisfy(\.isFinished) }

    /// Starts a job and drops the oldest finished ones beyond ``finishedMax``; `name` must not have
    /// been used before.
    ///
    /// - Returns: the document of the new job.
    /// - Throws: ``StartError/tooManyRunning`` at the limit.
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

    /// Dequeues all items that may be started now.
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

    /// Records the outcome of an item; does nothing if its job is unknown.
    ///
    /// - Returns: the job's document if this finished the job, else `nil`.
    package mutating func itemFinished(
        _ step: ScheduledItem, _ ending: PrefetchJob.ItemOutcome, at now: Instant
    ) -> PrefetchDocument? {
        guard let index = jobs.firstIndex(where: { $0.name == step.name }) else { return nil }
        let wasOver = jobs[index].isFinished
        jobs[index].itemFinished(step.task, ending, at: now)
        return !wasOver && jobs[index].isFinished ? jobs[index].document(at: now) : nil
    }

    /// Cancels a job and returns its document; `nil` if there is no such job, or it is finished.
    package mutating func cancel(_ name: String, at now: Instant) -> PrefetchDocument? {
        guard let index = jobs.firstIndex(where: { $0.name == name && !$0.isFinished }) else {
            return nil
        }
        jobs[index].cancel(at: now)
        return jobs[index].document(at: now)
    }

    /// Cancels all jobs and returns the documents of those that were not finished.
    package mutating func cancelAll(at now: Instant) -> [PrefetchDocument] {
        jobs.filter { !$0.isFinished }.compactMap { cancel($0.name, at: now) }
    }
}
