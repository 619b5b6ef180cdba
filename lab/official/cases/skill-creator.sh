# can: validate and package a skill, aggregate a benchmark, write its report, by its scripts
# cannot: run_eval.py, run_loop.py and improve_description.py: they start a command line for a model
set -e
mkdir -p mine/scripts bench/eval-1/with_skill/run-1
printf -- '---\nname: mine\ndescription: Counts words.\n---\nRun scripts/count.py.\n' > mine/SKILL.md
echo 'print(1)' > mine/scripts/count.py
export PYTHONPATH=/mnt/skills/skill-creator
python -m scripts.quick_validate mine | grep valid
python -m scripts.package_skill mine . && unzip -l mine.skill | grep count.py
echo '{"summary": {"passed": 3, "failed": 1, "total": 4, "pass_rate": 0.75}, "expectations": []}' > bench/eval-1/with_skill/run-1/grading.json
python -m scripts.aggregate_benchmark bench && grep 75 bench/benchmark.md
