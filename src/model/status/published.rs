//! The form of a status that is written down: never larger than the place that it is written to.

use std::collections::BTreeMap;

use super::{EnvironmentStatus, Finding, LastPass, Omitted, Status, TenantStatus};
use crate::model::{failure::Problem, name::Name};

/// The most characters of a message or hint.
const LONGEST: usize = 500;

/// How much is kept, from everything to nothing. The same bounds hold for each tenant, so that none displaces another.
const BOUNDS: [Bounds; 7] = [
    Bounds { keep: Keep::All, problems: usize::MAX },
    Bounds { keep: Keep::Findings(usize::MAX), problems: 20 },
    Bounds { keep: Keep::Findings(usize::MAX), problems: 3 },
    Bounds { keep: Keep::Findings(200), problems: 3 },
    Bounds { keep: Keep::Findings(20), problems: 1 },
    Bounds { keep: Keep::Findings(1), problems: 1 },
    Bounds { keep: Keep::Findings(0), problems: 0 },
];

#[derive(Clone, Copy)]
struct Bounds {
    keep: Keep,
    /// The most problems, and the most notes, of each environment and tenant.
    problems: usize,
}

/// Which environments are kept.
#[derive(Clone, Copy)]
enum Keep {
    All,
    /// Those with problems or notes, this many of each tenant.
    Findings(usize),
}

impl Status {
    /// The JSON of this status in at most `limit` bytes, which must allow for the controller's own problems. Nodes and
    /// images are left to anyone who observes them; what else does not fit is counted in `omitted`.
    pub fn published(&self, limit: usize) -> String {
        let short = self.without_nodes();
        let texts = BOUNDS.iter().map(|bounds| serde_json::to_string(&short.bounded(*bounds)).unwrap_or_default());
        let mut last = String::new();
        for text in texts {
            if text.len() <= limit {
                return text;
            }
            last = text;
        }
        last
    }

    /// Without images and nodes, and without what only one pass has done.
    fn without_nodes(&self) -> Self {
        let cut = |findings: &[Finding]| findings.iter().map(shortened).collect::<Vec<_>>();
        let environments = self.environments.iter().map(|(id, environment)| {
            let mut conditions = environment.conditions.clone();
            conditions.iter_mut().for_each(|condition| condition.message = cut_text(&condition.message));
            let (problems, notes) = (cut(&environment.problems), cut(&environment.notes));
            (id.clone(), EnvironmentStatus { conditions, problems, notes, images: Vec::new(), nodes: None })
        });
        Self {
            last_pass: LastPass::default(),
            conditions: self.conditions.clone(),
            problems: cut(&self.problems),
            notes: cut(&self.notes),
            tenants: self
                .tenants
                .iter()
                .map(|(name, tenant)| {
                    (name.clone(), TenantStatus { problems: cut(&tenant.problems), ..tenant.clone() })
                })
                .collect(),
            environments: environments.collect(),
            ..self.clone()
        }
    }

    fn bounded(&self, bounds: Bounds) -> Self {
        let mut omitted = Omitted::default();
        let mut bound = |findings: &mut Vec<Finding>| {
            omitted.problems += findings.len().saturating_sub(bounds.problems);
            findings.truncate(bounds.problems);
        };
        let mut status = self.clone();
        let mut kept: BTreeMap<&Name, usize> = BTreeMap::new();
        let before = self.environments.len();
        if let Keep::Findings(most) = bounds.keep {
            status.environments = self
                .environments
                .iter()
                .filter(|(id, environment)| {
                    let found = !environment.problems.is_empty() || !environment.notes.is_empty();
                    let count = kept.entry(&id.tenant).or_default();
                    *count += usize::from(found);
                    found && *count <= most
                })
                .map(|(id, environment)| (id.clone(), environment.clone()))
                .collect();
        }
        for environment in status.environments.values_mut() {
            bound(&mut environment.problems);
            bound(&mut environment.notes);
        }
        status.tenants.values_mut().for_each(|tenant| bound(&mut tenant.problems));
        if bounds.problems == 0 {
            status.tenants.clear();
            status.problems.truncate(20);
        }
        omitted.environments = before - status.environments.len();
        status.omitted = (omitted != Omitted::default()).then_some(omitted);
        status
    }
}

fn shortened(finding: &Finding) -> Finding {
    let Finding { reason, problem } = finding;
    let problem = Problem {
        message: cut_text(&problem.message),
        hint: problem.hint.as_deref().map(cut_text),
        source: None,
        ..problem.clone()
    };
    Finding { reason: *reason, problem }
}

fn cut_text(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{failure::Category, status::Reason};

    /// A status in which each environment has that many problems, in two tenants.
    fn status(environments: usize, problems: usize) -> Status {
        let problem = |n: usize| {
            let problem = Problem::new(Category::Schema, format!("unknown field `field{n}`"));
            Finding::new(Reason::InvalidFile, problem.in_file("environments/research/e.yaml").hint("remove it"))
        };
        let environment =
            EnvironmentStatus { problems: (0..problems).map(problem).collect(), ..EnvironmentStatus::default() };
        let mut all: BTreeMap<_, _> =
            (0..environments).map(|n| (format!("research/e{n}").parse().unwrap(), environment.clone())).collect();
        let one = EnvironmentStatus { problems: vec![problem(0)], ..EnvironmentStatus::default() };
        all.insert("small/one".parse().unwrap(), one);
        Status { environments: all, ..Status::default() }
    }

    #[test]
    fn what_is_published_always_fits() {
        for (environments, problems) in [(3, 1), (1500, 20), (10_000, 0), (10_000, 20)] {
            let text = status(environments, problems).published(1_000_000);
            assert!(text.len() <= 1_000_000, "{environments} × {problems}: {} bytes", text.len());
            let read: Status = serde_json::from_str(&text).unwrap();
            let one = &read.environments[&"small/one".parse().unwrap()];
            assert_eq!(one.problems.len(), 1, "one tenant never displaces another");
            let listed = read.omitted.unwrap_or_default().environments + read.environments.len();
            assert_eq!(listed, environments + 1);
        }
        assert_eq!(status(3, 1).published(1_000_000), status(3, 1).published(1_000_000));
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut status = status(1, 1);
        let findings = &mut status.environments.get_mut(&"research/e0".parse().unwrap()).unwrap().problems;
        findings[0].problem.message = "ä".repeat(1_000_000);
        assert!(status.published(1_000_000).len() < 10_000);
    }
}
