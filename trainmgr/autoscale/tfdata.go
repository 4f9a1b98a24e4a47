package autoscale

import "math"

// TFDataWorkers returns how many workers the AutoScaler of tf.data service asks for (TensorFlow,
// tensorflow/core/data/service/auto_scaler.cc): the sum of the trainers' rates over the mean of the workers' rates,
// rounded up, and at least 1. A trainer's rate is the inverse of the time in which it consumes an element, and a
// worker's rate is the inverse of the time in which it makes an element. The result is 0 if no time is known. The law
// of this package stands beside it in `millrace bench offload`.
func TFDataWorkers(targetSeconds, processingSeconds []float64) int {
	wanted, _ := rateSum(targetSeconds)
	made, workers := rateSum(processingSeconds)
	if wanted == 0 || made == 0 {
		return 0
	}
	mean := made / float64(workers)
	return int(math.Min(math.Max(1, math.Ceil(wanted/mean-1e-9)), math.MaxInt32))
}

// rateSum adds the inverses of the times up, and counts them. Times that are not above 0 are left out.
func rateSum(seconds []float64) (sum float64, count int) {
	for _, s := range seconds {
		if s > 0 && !math.IsInf(s, 0) && !math.IsInf(1/s, 0) {
			sum += 1 / s
			count++
		}
	}
	return sum, count
}
